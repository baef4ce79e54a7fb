"""Dependencies of functions: `Depends`, and functions that return parts of the request that runs now."""

from __future__ import annotations

import inspect
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from funcmcp._authoring.signatures.partials import signature_of
from funcmcp._compat.current import context_variable, get_context
from funcmcp._compat.request_parts import http_request_of
from funcmcp._mappings import lower_names, without, without_none
from funcmcp._public_names import public

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._app import MCPServer
    from funcmcp._authoring.calling.services import Scope
    from funcmcp._compat.context import Context
    from funcmcp._compat.request_parts import AccessToken
    from funcmcp._server.calls.context import HTTPRequestInfo

_LEFT_OUT = frozenset(
    {
        *("host", "content-length", "connection", "transfer-encoding", "upgrade", "te", "keep-alive", "expect"),
        *("proxy-authenticate", "proxy-authorization", "proxy-connection", "accept", "authorization"),
        "content-type",
    }
)
"""Headers that `get_http_headers` leaves out, because they describe the connection, or are secrets."""


class Dependency:
    """The mark of a parameter that is not an argument: a function that creates its value for each call."""

    __slots__ = ("factory", "use_cache")

    def __init__(self, factory: Callable[..., Any], *, use_cache: bool = True) -> None:
        self.factory: Callable[..., Any] = factory
        self.use_cache: bool = use_cache

    def bound_to(self, name: str, hint: Any) -> Dependency:  # noqa: ARG002 - of subclasses
        """Return the mark of a parameter with a name and an annotation."""
        return self

    async def resolve(self, scope: Scope, cache: dict[Any, Any], arguments: Mapping[str, Any]) -> Any:
        """Return the value for one call.

        Args:
            scope: Closes the value at the end of the call, if it is a context manager or a generator.
            cache: The values of the call by factory.
            arguments: The arguments of the call.
        """
        if self.use_cache and self.factory in cache:
            return cache[self.factory]
        kwargs = {
            name: await dependency.resolve(scope, cache, arguments)
            for name, dependency in dependencies_of(self.factory).items()
        }
        make = self.factory
        if inspect.isasyncgenfunction(make):
            make = asynccontextmanager(make)
        elif inspect.isgeneratorfunction(make):
            make = contextmanager(make)
        value = make(**kwargs)
        if inspect.isawaitable(value):
            value = await value
        if hasattr(value, "__aenter__") or (hasattr(value, "__enter__") and make is not self.factory):
            value = await scope.enter(value)
        cache[self.factory] = value
        return value


@public("funcmcp.compat")
def Depends(dependency: Callable[..., Any], *, use_cache: bool = True) -> Any:  # noqa: N802 - a class in other frameworks
    """Return the mark of a parameter that gets what a function returns, instead of an argument.

    Args:
        dependency: Returns the value, or is a generator or an async context manager. It may be async, and may have
            dependencies itself.
        use_cache: Call the function once for each call, also if several parameters use it.
    """
    return Dependency(dependency, use_cache=use_cache)


@public("funcmcp.compat")
def CurrentContext() -> Any:  # noqa: N802 - a class in other frameworks
    """Return the mark of a parameter that gets the context."""
    return Dependency(get_context)


@public("funcmcp.compat")
def CurrentFastMCP() -> Any:  # noqa: N802 - a class in other frameworks
    """Return the mark of a parameter that gets the server."""
    return Dependency(get_server)


@public("funcmcp.compat")
def CurrentRequest() -> Any:  # noqa: N802 - a class in other frameworks
    """Return the mark of a parameter that gets the HTTP request."""
    return Dependency(get_http_request)


@public("funcmcp.compat")
def CurrentHeaders() -> Any:  # noqa: N802 - a class in other frameworks
    """Return the mark of a parameter that gets the headers of the HTTP request."""
    return Dependency(get_http_headers)


@public("funcmcp.compat")
def CurrentAccessToken() -> Any:  # noqa: N802 - a class in other frameworks
    """Return the mark of a parameter that gets the caller's token."""
    return Dependency(_required_access_token)


@public("funcmcp.compat")
def TokenClaim(name: str) -> Any:  # noqa: N802 - a class in other frameworks
    """Return the mark of a parameter that gets a claim of the caller's token."""

    def claim() -> Any:
        return _required_access_token().claims[name]

    return Dependency(claim)


@public("funcmcp.compat")
class Progress:
    """Reports progress as FastMCP's dependency of this name: ``progress: Progress = Progress()``."""

    def __init__(self) -> None:
        self.total: float | None = None
        self.current: float | None = None
        self.message: str | None = None

    async def set_total(self, total: float) -> None:
        """Set the total."""
        self.total = total
        await self._report()

    async def increment(self, amount: float = 1) -> None:
        """Add to the progress."""
        self.current = (self.current or 0) + amount
        await self._report()

    async def set_message(self, message: str | None) -> None:
        """Set the message."""
        self.message = message
        await self._report()

    async def _report(self) -> None:
        await get_context().report_progress(self.current or 0, self.total, self.message)


def dependencies_of(function: Callable[..., Any]) -> dict[str, Dependency]:
    """Return the parameters of a function that are not arguments, by name."""
    try:
        signature, unbound = inspect.signature(function, eval_str=True), signature_of(function).parameters
    except (NameError, TypeError, ValueError):
        return {}
    marks = {
        parameter.name: dependency_of(parameter.name, parameter.annotation, parameter.default)
        for parameter in signature.parameters.values()
        if parameter.name in unbound
    }
    return without_none(marks)


def dependency_of(name: str, annotation: Any, default: Any) -> Dependency | None:
    """Return the mark of a parameter that is not an argument; None if it is one."""
    if isinstance(default, Dependency):
        return default
    if isinstance(default, Progress):
        return Dependency(Progress, use_cache=False)
    if get_origin(annotation) is Annotated:
        for mark in get_args(annotation)[1:]:
            if isinstance(mark, Dependency):
                return mark.bound_to(name, get_args(annotation)[0])
    return None


@public("funcmcp.compat")
def get_server() -> MCPServer:
    """Return the server of the request that runs now."""
    return get_context().fastmcp


@public("funcmcp.compat")
def get_access_token() -> AccessToken | None:
    """Return the token of the caller; None for a caller without credentials."""
    context = context_variable.get()
    return None if context is None else context.access_token


def _required_access_token() -> AccessToken:
    token = get_access_token()
    if token is None:
        raise RuntimeError("No access token found: the caller sent no credentials.")
    return token


@public("funcmcp.compat")
def get_http_headers(
    include_all: bool = False,  # noqa: FBT001, FBT002 - FastMCP takes it by position
    include: set[str] | None = None,
) -> dict[str, str]:
    """Return the headers of the HTTP request by lower-case name; an empty dict on stdio.

    Args:
        include_all: Whether headers of the connection and the credentials are included.
        include: Names of such headers that are included.
    """
    http = _http(context_variable.get())
    if http is None:
        return {}
    headers = lower_names(http.headers)
    if include_all:
        return headers
    left_out = _LEFT_OUT - {name.lower() for name in include or ()}
    return without(headers, *left_out)


@public("funcmcp.compat")
def get_http_request() -> Any:
    """Return the HTTP request: Starlette's ``Request`` if Starlette is installed, else an object with its attributes.

    Raises:
        RuntimeError: The request did not come over HTTP.
    """
    http = _http(context_variable.get())
    if http is None:
        raise RuntimeError("No active HTTP request found.")
    return http_request_of(http)


def _http(context: Context | None) -> HTTPRequestInfo | None:
    return None if context is None else context._request.http  # noqa: SLF001 - a part of Context
