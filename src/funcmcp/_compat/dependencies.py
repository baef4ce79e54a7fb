"""Dependencies of functions: `Depends`, and functions that return parts of the request that runs now."""

from __future__ import annotations

import inspect
import logging
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args, get_origin

from funcmcp._authoring.signatures.partials import signature_of
from funcmcp._authoring.signatures.signature import Signature
from funcmcp._compat.context import context_variable, get_context
from funcmcp._compat.request_parts import http_request_of
from funcmcp._objects.mappings import lower_names, without, without_none
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from funcmcp._app.mcp_server import MCPServer
    from funcmcp._authoring.calling.services import Scope
    from funcmcp._compat.context import Context
    from funcmcp._compat.request_parts import AccessToken
    from funcmcp._server.calls.context import HTTPRequestInfo

_logger = logging.getLogger("funcmcp.compat")

_LEFT_OUT = frozenset(
    {
        *("host", "content-length", "connection", "transfer-encoding", "upgrade", "te", "keep-alive", "expect"),
        *("proxy-authenticate", "proxy-authorization", "proxy-connection", "accept", "content-type"),
        *("authorization", "cookie", "mcp-session-id"),
    }
)
"""Headers that `get_http_headers` leaves out, because callers forward what they get: they describe the connection, or
are secrets."""

_CREDENTIALS = frozenset({"authorization", "cookie"})
"""Headers among them that `CurrentHeaders` has."""


class Resolution:
    """The dependencies of one call.

    Args:
        scope: Leaves the context managers of the dependencies at the end of the call.
        dependencies: The dependencies of the function by parameter.
        arguments: The arguments of the call. The values of dependencies are added.
        defaults: The defaults of the function's other parameters.

    Attributes:
        cache: The values of the call by factory.
    """

    def __init__(
        self,
        scope: Scope,
        dependencies: Mapping[str, Dependency],
        arguments: dict[str, Any],
        defaults: Mapping[str, Any],
    ) -> None:
        self.scope = scope
        self.arguments = arguments
        self.cache: dict[Any, Any] = {}
        self._dependencies = dependencies
        self._defaults = defaults
        self._resolving: list[str] = []

    async def value_of(self, name: str) -> Any:
        """Return the value that the function gets for a parameter.

        Raises:
            LookupError: The function has no value for it.
            ValueError: The value depends on itself.
        """
        if name in self.arguments:
            return self.arguments[name]
        if name not in self._dependencies:
            return self._defaults[name]
        if name in self._resolving:
            raise ValueError(f"A dependency can't depend on itself: {' -> '.join([*self._resolving, name])}.")
        self._resolving.append(name)
        try:
            value = await self._dependencies[name].resolve(self, name)
        finally:
            self._resolving.pop()
        self.arguments[name] = value
        return value


class Dependency:
    """The mark of a parameter that is not an argument: a function that creates its value for each call."""

    __slots__ = ("bindings", "factory", "use_cache")

    hides_failures: ClassVar[bool] = True
    """Whether clients get a general text in place of an exception's own, as in FastMCP."""

    def __init__(
        self, factory: Callable[..., Any], bindings: Mapping[str, Any] | None = None, *, use_cache: bool = True
    ) -> None:
        self.factory: Callable[..., Any] = factory
        self.bindings: Mapping[str, Any] = bindings or {}
        self.use_cache: bool = use_cache

    @property
    def key(self) -> Any:
        """The key of the value in the cache of a call, which dependencies with the same value share."""
        if not self.bindings:
            return self.factory
        return self.factory, frozenset((name, _key_of(value, name)) for name, value in self.bindings.items())

    def bound_to(self, name: str, hint: Any) -> Dependency:  # noqa: ARG002 - of subclasses
        """Return the mark of a parameter with a name and an annotation."""
        return self

    async def resolve(self, resolution: Resolution, name: str) -> Any:  # noqa: ARG002 - of subclasses
        """Return the value of a parameter for one call. It is entered if it is a context manager."""
        key = self.key
        if self.use_cache and key in resolution.cache:
            return resolution.cache[key]
        value = await self.make(resolution)
        resolution.cache[key] = value
        return value

    async def make(self, resolution: Resolution) -> Any:
        """Call the factory, and return its value, which is entered as FastMCP does.

        It enters what a plain factory returns if that is a context manager. It enters neither what an async factory
        returns nor a generator.
        """
        kwargs: dict[str, Any] = {}
        for name, dependency in dependencies_of(self.factory).items():
            if name not in self.bindings:
                kwargs[name] = await dependency.resolve(resolution, name)
        for name, value in self.bindings.items():
            kwargs[name] = await value.resolve(resolution, name) if isinstance(value, Dependency) else value
        scope = resolution.scope
        value = await scope.call_factory(self.factory, kwargs)
        if isinstance(value, AbstractAsyncContextManager | AbstractContextManager):
            return await scope.enter(value)
        return await value if inspect.isawaitable(value) else value


class Current(Dependency):
    """The mark of a parameter that gets a part of the current request. The part is not entered."""

    __slots__ = ()

    async def resolve(self, resolution: Resolution, name: str) -> Any:  # noqa: ARG002 - it is the same for all calls
        """Return the part of the request."""
        return self.factory()


class SharedDependency(Dependency):
    """The mark of a parameter whose value is created once, and closed when the server ends."""

    __slots__ = ()

    async def resolve(self, resolution: Resolution, name: str) -> Any:  # noqa: ARG002 - it is the same for all parameters
        """Return the value, which is the same in all calls of an event loop."""

        async def shared() -> AsyncIterator[Any]:
            async with resolution.scope.new_scope() as scope:
                yield await self.make(Resolution(scope, {}, {}, {}))

        return await resolution.scope.shared((SharedDependency, self.factory), shared)


class ArgumentReference(Dependency):
    """The mark of a factory's parameter that gets the same value as a parameter of the function of the call."""

    __slots__ = ("default", "optional", "parameter")

    def __init__(self, parameter: str | None, default: Any, *, optional: bool) -> None:
        super().__init__(type(self))
        self.parameter = parameter
        self.default = default
        self.optional = optional

    async def resolve(self, resolution: Resolution, name: str) -> Any:
        """Return the value that the function gets."""
        try:
            return await resolution.value_of(self.parameter or name)
        except LookupError:
            if self.optional:
                return None
            if self.default is inspect.Parameter.empty:
                raise
            return self.default


def _key_of(value: Any, name: str) -> Any:
    """Return the key of an argument of a factory, which equal arguments share."""
    if isinstance(value, ArgumentReference):
        return ArgumentReference, value.parameter or name, value.optional, _key_of(value.default, name)
    if isinstance(value, Dependency):
        return value.key
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value  # 1, 1.0 and True are equal, and a factory may treat them differently


@public("funcmcp.compat")
def Depends(dependency: Callable[..., Any], *, use_cache: bool = True, **bindings: Any) -> Any:  # noqa: N802 - a class in other frameworks
    """Return the mark of a parameter that gets what a function returns, instead of an argument.

    Args:
        dependency: Returns the value. It may be async, and may have dependencies itself. A context manager that a plain
            function returns is entered for the call, such as that of a function with `contextlib.contextmanager`. A
            generator without such a decorator is not entered.
        use_cache: Call the function once for each call, also if several parameters use it.
        bindings: Values for parameters of the function, such as `CallArgument` and other dependencies.
    """
    if inspect.isgeneratorfunction(dependency) or inspect.isasyncgenfunction(dependency):
        _logger.warning(
            "Depends(%s) passes on the generator itself, as in FastMCP. To pass on what it yields, decorate it "
            "with contextlib.contextmanager or asynccontextmanager.",
            dependency.__name__,
        )
    return Dependency(dependency, bindings, use_cache=use_cache)


@public("funcmcp.compat")
def Shared(dependency: Callable[..., Any]) -> Any:  # noqa: N802 - a class in other frameworks
    """Return the mark of a parameter whose value is created once for all calls, and closed when the server ends.

    Args:
        dependency: Returns the value, as for `Depends`. It gets no arguments of a call.
    """
    return SharedDependency(dependency)


@public("funcmcp.compat")
def CallArgument(  # noqa: N802 - a class in other frameworks
    parameter: str | None = None,
    optional: bool = False,  # noqa: FBT001, FBT002 - FastMCP takes it by position
    *,
    default: Any = inspect.Parameter.empty,
) -> Any:
    """Return the mark of a parameter of a dependency that gets what the tool gets for one of its parameters.

    Args:
        parameter: The name of the tool's parameter. By default it is that of the dependency's. If the tool has no
            such parameter, clients send it as another argument of the tool.
        optional: Pass None if the tool has no such parameter.
        default: The value if the client does not send the argument.

    Raises:
        TypeError: There are both *optional* and *default*.
    """
    if optional and default is not inspect.Parameter.empty:
        raise TypeError("CallArgument takes optional or default, not both.")
    return ArgumentReference(parameter, default, optional=optional)


@public("funcmcp.compat")
def CurrentContext() -> Any:  # noqa: N802 - a class in other frameworks
    """Return the mark of a parameter that gets the context."""
    return Current(get_context)


@public("funcmcp.compat")
def CurrentFastMCP() -> Any:  # noqa: N802 - a class in other frameworks
    """Return the mark of a parameter that gets the server."""
    return Current(get_server)


@public("funcmcp.compat")
def CurrentRequest() -> Any:  # noqa: N802 - a class in other frameworks
    """Return the mark of a parameter that gets the HTTP request."""
    return Current(get_http_request)


@public("funcmcp.compat")
def CurrentHeaders() -> Any:  # noqa: N802 - a class in other frameworks
    """Return the mark of a parameter that gets the headers of the HTTP request, with its credentials."""
    return Current(partial(get_http_headers, include=set(_CREDENTIALS)))


@public("funcmcp.compat")
def CurrentAccessToken() -> Any:  # noqa: N802 - a class in other frameworks
    """Return the mark of a parameter that gets the caller's token."""
    return Current(_required_access_token)


@public("funcmcp.compat")
def TokenClaim(name: str) -> Any:  # noqa: N802 - a class in other frameworks
    """Return the mark of a parameter that gets a claim of the caller's token."""

    def claim() -> str:
        value = _required_access_token().claims.get(name)
        if value is None:
            raise RuntimeError(f"The access token has no claim {name!r}.")
        return str(value)

    return Current(claim)


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
        if any(isinstance(mark, Dependency) for mark in get_args(annotation)[1:]):
            raise TypeError(
                f"The parameter {name!r} has a dependency in its annotation and as its default. Remove one."
            )
        return default
    if isinstance(default, Progress):
        return Current(Progress)
    if get_origin(annotation) is Annotated:
        for mark in get_args(annotation)[1:]:
            if isinstance(mark, Dependency):
                return mark.bound_to(name, get_args(annotation)[0])
    return _injected(annotation, default)


def _injected(annotation: Any, default: Any) -> Dependency | None:
    """Return the mark of a parameter whose type says that it is not an argument, such as `UserSession`."""
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and hasattr(kind, "injected_for"):
            mark: Dependency = kind.injected_for(default)
            return mark
    return None


def referenced_arguments(
    dependencies: Mapping[str, Dependency], hints: Mapping[str, Any]
) -> dict[str, inspect.Parameter]:
    """Return the arguments that `CallArgument` names in dependencies, and in theirs.

    Args:
        dependencies: The dependencies of a function by parameter.
        hints: The annotations of the parameters.
    """
    arguments: dict[str, inspect.Parameter] = {}
    for name, dependency in dependencies.items():
        if isinstance(dependency, ArgumentReference):
            if not dependency.optional:
                argument = dependency.parameter or name
                arguments.setdefault(
                    argument,
                    inspect.Parameter(
                        argument,
                        inspect.Parameter.KEYWORD_ONLY,
                        default=dependency.default,
                        annotation=_without_marks(hints.get(name, inspect.Parameter.empty)),
                    ),
                )
        elif type(dependency) is Dependency:
            inner = {**dependencies_of(dependency.factory), **_dependencies_in(dependency.bindings)}
            arguments = {**referenced_arguments(inner, Signature(dependency.factory).try_hints()), **arguments}
    return arguments


def _dependencies_in(bindings: Mapping[str, Any]) -> dict[str, Dependency]:
    return {name: value for name, value in bindings.items() if isinstance(value, Dependency)}


def _without_marks(hint: Any) -> Any:
    """Return an annotation without dependencies."""
    if get_origin(hint) is not Annotated:
        return hint
    base, *metadata = get_args(hint)
    remaining = [mark for mark in metadata if not isinstance(mark, Dependency)]
    return Annotated[(base, *remaining)] if remaining else base


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
        include_all: Whether headers of the connection, the credentials and the session's id are included.
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
    return None if context is None else context.http
