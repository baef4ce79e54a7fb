"""Grants of tools: what a tool needs at another service before it runs: ``@mcp.tool(grant=Grant("github"))``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from funcmcp._auth.grants import Grant
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funcmcp._auth.principal import Principal
    from funcmcp._authoring.calling.services import Services
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import ToolHandler


class CallerGrants(Protocol):
    """The grants of callers, as `funcmcp._grants.tool_grants.ToolGrants` has them."""

    async def token(self, context: RequestContext, grant: Grant, refused: str | None = None) -> str:
        """Return a token of the caller; raise UpstreamTokenError."""

    async def end(self, principal: Principal | None, name: str) -> bool:
        """Forget the account of a caller; return whether the service has ended the grant, too."""


def grants_of(services: Services) -> CallerGrants:
    """Return the grants of callers of a server, or of the server that mounts it.

    Raises:
        RuntimeError: The server has none.
    """
    runtime = services.runtime
    grants = None if runtime is None else runtime.top.grants
    if grants is None:
        raise RuntimeError("Grants need MCPServer(auth=Auth(..., grants=[GrantProvider(...)])).")
    return cast("CallerGrants", grants)


def checked_grants(name: str, grant: object) -> tuple[Grant, ...]:
    """Return the grants of the option ``grant`` of a tool; raise RegistrationError for other values."""
    grants = tuple(grant) if isinstance(grant, list | tuple) else (grant,)
    for needed in grants:
        if not isinstance(needed, Grant):
            raise RegistrationError(
                f'grant of {name} must be Grant("github", scopes=[...]), or a list of them; got {needed!r:.60}.'
            )
    return cast("tuple[Grant, ...]", grants)


def granted(
    handler: ToolHandler, check: Callable[..., object], grants: Sequence[Grant], services: Services
) -> ToolHandler:
    """Return the handler of a tool that runs when the caller has given all grants.

    Args:
        handler: Runs the tool.
        check: Raises for invalid arguments, so that nobody is asked for a call that can't run.
        grants: What the tool needs.
        services: The services of the server.
    """

    async def run(context: RequestContext, arguments: dict[str, Any]) -> Any:
        check(arguments)
        for grant in grants:
            await grants_of(services).token(context, grant)
        return await handler(context, arguments)

    return run
