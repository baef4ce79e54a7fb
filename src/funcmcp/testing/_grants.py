"""Tokens for tools with ``grant=`` in a test: see `grant_tokens`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from funcmcp._auth.principal import UpstreamTokenError
from funcmcp._objects.public_names import public
from funcmcp._serving.composition import runtime_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from funcmcp import MCPServer
    from funcmcp._auth.grants import Grant
    from funcmcp._auth.principal import Principal
    from funcmcp._server.calls.context import RequestContext


@public("funcmcp.testing")
@contextmanager
def grant_tokens(server: MCPServer, tokens: Mapping[str, str]) -> Iterator[None]:
    """Give the tools of a server tokens in place of those of their users, in a ``with`` block.

    Nobody is asked, and no service gets a request. A service without a token is one at which the user has no account:
    the tool gets an `funcmcp.auth.UpstreamTokenError` with the reason ``"sign_in"``. The caller needs no sign-in.

    Args:
        server: The server, or the one that mounts it.
        tokens: The token for each service, by the name of its `funcmcp.auth.GrantProvider`.

    Example:
        ```python
        with grant_tokens(mcp, {"github": "a-token-of-the-test"}):
            async with Client(mcp) as client:
                await client.call_tool("open_issue", {"repository": "docs", "title": "A test"})
        ```
    """
    runtime = runtime_of(server).top
    earlier = runtime.grants
    runtime.grants = cast("Any", _Tokens(dict(tokens)))
    try:
        yield
    finally:
        runtime.grants = earlier


class _Tokens:
    """The tokens of a test, in place of `funcmcp._grants.tool_grants.ToolGrants`.

    Args:
        tokens: The tokens by service.
    """

    def __init__(self, tokens: dict[str, str]) -> None:
        self._tokens = tokens
        self.routes: tuple[()] = ()
        self.redirect_uris: Mapping[str, str] = {}

    def check(self, needed: Iterable[tuple[str, Grant]]) -> None:
        """Accept all tools: one without a token gets an error."""

    async def token(self, context: RequestContext, grant: Grant, refused: str | None = None) -> str:
        """Return the token of a service. A refused one is forgotten."""
        del context
        if refused is not None and self._tokens.get(grant.provider) == refused:
            del self._tokens[grant.provider]
        if grant.provider not in self._tokens:
            text = f"The account at {grant.provider} is not connected: grant_tokens has no token for it."
            raise UpstreamTokenError("sign_in", text)
        return self._tokens[grant.provider]

    async def end(self, principal: Principal | None, name: str) -> bool:
        """Forget the token of a service; return whether there was one."""
        del principal
        return self._tokens.pop(name, None) is not None
