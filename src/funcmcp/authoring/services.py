"""Services: what functions need and callers don't send. Kept by svcs, which is loaded with the first of them."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_type_hints

from funcmcp.server.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    import svcs

T = TypeVar("T")

Scope = Literal["request", "app"]


class Services:
    """The services of one server, by type.

    A factory may be a class, a function, an async function, or a generator (async or not) that yields the service and
    cleans up after its `yield`. Its own parameters are services too, by their type hints.

    ```python
    mcp.services.register_factory(OrderService, OrderService.connect)
    mcp.services.register_value(Settings, Settings())
    ```
    """

    def __init__(self) -> None:
        self._registry: svcs.Registry | None = None
        self._app: svcs.Container | None = None
        self._types: set[Any] = set()
        self._overrides: dict[Any, Any] = {}
        self._app_lock = asyncio.Lock()

    def register_factory(self, kind: type[T], factory: Callable[..., Any], *, scope: Scope = "request") -> None:
        """Register how a service is made.

        Args:
            kind: the type that functions ask for.
            factory: makes it.
            scope: `request` makes one for each call and cleans it up after the call; `app` makes one when it is first
                needed, and cleans it up when the server stops.

        Raises:
            RegistrationError: the scope is neither, or a parameter of the factory has no type hint.
        """
        if scope not in {"request", "app"}:
            raise RegistrationError(f"scope must be 'request' or 'app', not {scope!r}.")
        make = _injected(factory)
        registry = self._load()
        if scope == "request":
            registry.register_factory(kind, make)
        else:
            own = type(f"AppScoped{kind.__name__}", (), {})  # a key of its own, beside the type that shares it
            registry.register_factory(own, make)

            async def shared() -> Any:
                return await self._of_app(own)

            registry.register_factory(kind, shared, enter=False)
        self._types.add(kind)

    def register_value(self, kind: type[T], value: T) -> None:
        """Register a service that exists already."""
        self._load().register_value(kind, value)
        self._types.add(kind)

    @contextmanager
    def override(self, kind: type[T], value: T) -> Iterator[None]:
        """Put another object in a service's place while the block runs: for tests."""
        before = dict(self._overrides)
        self._overrides[kind] = value
        try:
            yield
        finally:
            self._overrides = before

    @asynccontextmanager
    async def request(self) -> AsyncIterator[RequestServices]:
        """Open a request's scope; what was made in it is cleaned up at the end."""
        import svcs  # noqa: PLC0415 - loaded by those who use it

        async with svcs.Container(self._load()) as container:
            yield RequestServices(container, self._overrides)

    async def aclose(self) -> None:
        """Clean up the services that live as long as the server."""
        if self._app is not None:
            app, self._app = self._app, None
            await app.aclose()

    def __contains__(self, kind: object) -> bool:
        try:
            return kind in self._types or kind in self._overrides
        except TypeError:  # a type hint that can't be hashed is no service
            return False

    def _load(self) -> svcs.Registry:
        if self._registry is None:
            import svcs  # noqa: PLC0415 - loaded by those who use it

            self._registry = svcs.Registry()
        return self._registry

    async def _of_app(self, kind: Any) -> Any:
        import svcs  # noqa: PLC0415 - loaded by those who use it

        async with self._app_lock:
            if self._app is None:
                self._app = svcs.Container(self._load())
            return await self._app.aget(kind)


class RequestServices:
    """The services of one request."""

    __slots__ = ("_container", "_overrides")

    def __init__(self, container: svcs.Container, overrides: dict[Any, Any]) -> None:
        self._container = container
        self._overrides = overrides

    async def get(self, kind: Any) -> Any:
        """Return the service of a type."""
        if kind in self._overrides:
            return self._overrides[kind]
        return await self._container.aget(kind)

    async def construct(self, kind: type[T]) -> T:
        """Construct an object whose constructor's parameters are services."""
        return kind(**{name: await self.get(hint) for name, hint in _needs(kind).items()})


def _injected(factory: Callable[..., Any]) -> Callable[..., Any]:
    """Return a factory for svcs whose parameters are filled with services."""
    needs = _needs(factory)
    make = factory
    if inspect.isasyncgenfunction(factory):
        make = asynccontextmanager(factory)
    elif inspect.isgeneratorfunction(factory):
        make = contextmanager(factory)
    if not needs:

        def plain() -> Any:  # svcs looks at the signature of what it calls
            return make()

        return plain

    async def inject(svcs_container: svcs.Container) -> Any:
        made = make(**{name: await svcs_container.aget(hint) for name, hint in needs.items()})
        return await made if inspect.isawaitable(made) else made

    return inject


def _needs(factory: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of a factory's parameters that have no default."""
    hinted = factory.__init__ if inspect.isclass(factory) else factory
    parameters = [
        parameter
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}
    ]
    if not parameters:
        return {}
    hints = get_type_hints(getattr(hinted, "__func__", hinted))
    for parameter in parameters:
        if parameter.name not in hints:
            raise RegistrationError(
                f"{getattr(factory, '__qualname__', factory)}: the parameter {parameter.name!r} needs a type hint that "
                "says which service it is."
            )
    return {parameter.name: hints[parameter.name] for parameter in parameters}
