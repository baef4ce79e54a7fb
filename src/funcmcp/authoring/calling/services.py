"""Services: objects that functions get by the type of a parameter.

Built on `svcs`, which is loaded when the first factory is registered.
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_type_hints

from funcmcp.authoring.calling.threads import Threads
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import svcs

T = TypeVar("T")


class Services:
    """The services of one server, and the worker threads of its plain functions.

    A factory's own parameters are injected by type, too. It may be async, and it may be a generator (async or not)
    that yields the service once and cleans up afterwards: at the end of the request, or for the scope ``"app"``
    in `aclose`.

    Args:
        lax: convert arguments of tools that do not say otherwise.

    Example:
        ```python
        mcp.services.register_value(Settings, Settings())
        mcp.services.register_factory(Database, Database.connect, scope="app")
        ```
    """

    def __init__(self, *, lax: bool = False) -> None:
        self.threads = Threads()
        self.lax = lax
        self._values: dict[Any, Any] = {}
        self._app_types: set[Any] = set()
        self._request_types: set[Any] = set()
        self._registry: svcs.Registry | None = None
        self._app: svcs.Container | None = None
        self._locks: dict[Any, asyncio.Lock] = {}

    def register_factory(
        self, service: type[T], factory: Callable[..., Any], *, scope: Literal["request", "app"] = "request"
    ) -> None:
        """Register what makes a service.

        Args:
            service: the type by which functions ask for it.
            factory: returns the service; see the class for the forms that it may have.
            scope: ``"request"`` makes one for each request, ``"app"`` one for all of them.

        Raises:
            RegistrationError: the scope is unknown.
        """
        if scope not in {"request", "app"}:
            raise RegistrationError(f"scope must be 'request' or 'app', not {scope!r}.")
        cleans_up = inspect.isgeneratorfunction(factory) or inspect.isasyncgenfunction(factory)
        self._containers()[0].register_factory(service, _injected(factory, self), enter=cleans_up)
        self._app_types.discard(service)
        self._request_types.discard(service)
        self._values.pop(service, None)
        (self._app_types if scope == "app" else self._request_types).add(service)

    def register_value(self, service: type[T], value: T) -> None:
        """Register a ready-made service for all requests. It is not closed by funcmcp."""
        self._app_types.discard(service)
        self._request_types.discard(service)
        self._values[service] = value

    @contextmanager
    def override(self, service: type[T], value: T) -> Iterator[None]:
        """Put a value in a registered service's place for the length of a ``with`` block; made for tests.

        Raises:
            RegistrationError: no service of this type is registered.
        """
        if service not in self:
            raise RegistrationError(f"{_name(service)} is not a registered service, so there is nothing to override.")
        before = self._values.get(service, _NOTHING)
        self._values[service] = value
        try:
            yield
        finally:
            if before is _NOTHING:
                del self._values[service]
            else:
                self._values[service] = before

    @property
    def has_app_scope(self) -> bool:
        """Whether a service of the scope ``"app"`` is registered, which `aclose` cleans up after."""
        return bool(self._app_types)

    def __contains__(self, service: object) -> bool:
        try:
            return service in self._values or service in self._request_types or service in self._app_types
        except TypeError:  # not hashable, so not a type
            return False

    def scope(self) -> Scope:
        """Return the services of one request; close it at the request's end."""
        return Scope(self)

    async def aclose(self) -> None:
        """Clean up after the services of the scope ``"app"``; they are made anew if they are asked for again."""
        self._locks.clear()
        if self._app is not None:
            await self._app.aclose()

    async def from_app(self, service: Any) -> Any:
        """Return a service of the scope ``"app"``, made once however many requests ask for it at the same time."""
        async with self._locks.setdefault(service, asyncio.Lock()):
            return await self._containers()[1].aget(service)

    def request_container(self) -> svcs.Container:
        """Return a new container for one request's services."""
        import svcs  # noqa: PLC0415 - loaded already, by the first factory

        return svcs.Container(self._containers()[0])

    def _containers(self) -> tuple[svcs.Registry, svcs.Container]:
        if self._registry is None or self._app is None:
            import svcs  # noqa: PLC0415 - most servers have no services

            self._registry = svcs.Registry()
            self._app = svcs.Container(self._registry)
        return self._registry, self._app

    async def find(self, service: Any, container: Callable[[], svcs.Container] | None) -> Any:
        """Return a service: an override or value, one of the scope ``"app"``, or one of a request's container."""
        if service in self._values:
            return self._values[service]
        if service in self._app_types:
            return await self.from_app(service)
        if service not in self._request_types:
            raise RegistrationError(f"{_name(service)} is not a registered service; see services.register_factory.")
        if container is None:
            raise RegistrationError(
                f"A service of the scope 'app' can't use {_name(service)}: each request has its own."
            )
        return await container().aget(service)

    def is_app_container(self, container: svcs.Container) -> bool:
        """Tell whether a container is the one of the scope ``"app"``."""
        return container is self._app


class Scope:
    """The services of one request."""

    __slots__ = ("_container", "_services")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._container: svcs.Container | None = None

    async def get(self, service: Any) -> Any:
        """Return the request's service of a type; raise RegistrationError if none is registered."""
        return await self._services.find(service, self._own)

    async def construct(self, cls: Callable[..., Any]) -> Any:
        """Return a new object of a class, its constructor's parameters injected by type."""
        return cls(**{name: await self.get(service) for name, service in injectable(cls, self._services).items()})

    async def aclose(self) -> None:
        """Clean up after the services of this request."""
        if self._container is not None:
            await self._container.aclose()

    def _own(self) -> svcs.Container:
        if self._container is None:
            self._container = self._services.request_container()
        return self._container


_NOTHING: Any = object()


def injectable(factory: Callable[..., Any], services: Services) -> dict[str, Any]:
    """Return the parameters of a factory or class that are to be injected, with their types.

    A parameter with a default is left alone unless its type is a registered service.

    Raises:
        RegistrationError: a parameter's type is not a registered service.
    """
    try:
        parameters = inspect.signature(factory).parameters
    except ValueError:  # a class of C code that does not say
        return {}
    is_class = isinstance(factory, type)
    hints = get_type_hints(factory.__init__ if is_class else getattr(factory, "__func__", factory))
    found = {}
    for parameter in parameters.values():
        service = hints.get(parameter.name)
        if service in services:
            found[parameter.name] = service
        elif parameter.default is parameter.empty and parameter.kind not in {
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        }:
            raise RegistrationError(
                f"{_name(factory)} needs {parameter.name!r}, which is not a registered service; "
                "register its type with services.register_factory or services.register_value."
            )
    return found


def _injected(factory: Callable[..., Any], services: Services) -> Callable[..., Any]:
    """Return a factory that svcs can call: it takes the container that asks, and injects the rest."""
    make = factory
    if inspect.isgeneratorfunction(factory):
        make = contextmanager(factory)
    elif inspect.isasyncgenfunction(factory):
        make = asynccontextmanager(factory)

    async def inject(svcs_container: svcs.Container) -> Any:
        container = None if services.is_app_container(svcs_container) else lambda: svcs_container
        wanted = injectable(factory, services)
        made = make(**{name: await services.find(service, container) for name, service in wanted.items()})
        return await made if inspect.isawaitable(made) else made

    return inject


def _name(service: Any) -> str:
    return getattr(service, "__qualname__", repr(service))
