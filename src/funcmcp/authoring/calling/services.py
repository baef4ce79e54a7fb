"""Services: objects that functions get through the type of a parameter.

How it works: `Services` belongs to a server, and `Scope` to one request. A service is looked up in three steps. A value
or an override (`register_value`, `override`) is returned at once. A service of the scope ``"app"`` comes from one svcs
container, which the server closes at its end; a lock for each type ensures that it is created once. A service of the
scope ``"request"`` comes from a svcs container that the request's `Scope` creates when it is first needed, and closes
with the request. A factory's own parameters are injected in the same way, from the container that calls it, so a
service of the scope ``"app"`` can't depend on one of a request.

svcs is loaded when the first factory is registered.
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_type_hints

from funcmcp.authoring.calling.lifespans import Lifespans
from funcmcp.authoring.calling.threads import Threads
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import svcs

T = TypeVar("T")


class Services:
    """The services of one server, its lifespans, and the worker threads of its plain functions.

    A factory's own parameters are also injected by type. A factory may be async. It may also be a generator, async or
    not, that yields the service once and then cleans up: at the end of the request, or in `aclose` for the scope
    ``"app"``.

    Args:
        lax: Whether arguments are converted for tools without an option `lax` of their own.

    Example:
        ```python
        mcp.services.register_value(Settings, Settings())
        mcp.services.register_factory(Database, Database.connect, scope="app")
        ```
    """

    def __init__(self, *, lax: bool = False) -> None:
        self.threads = Threads()
        self.lifespans = Lifespans()
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
        """Register a function that creates a service.

        Args:
            service: The type of the parameters that get the service.
            factory: Returns the service; see the class for the forms that it may have.
            scope: ``"request"`` creates one service for each request, ``"app"`` one for all requests.

        Raises:
            RegistrationError: The scope is unknown.
        """
        if scope not in {"request", "app"}:
            raise RegistrationError(f"scope must be 'request' or 'app', not {scope!r}.")
        cleans_up = inspect.isgeneratorfunction(factory) or inspect.isasyncgenfunction(factory)
        self._containers()[0].register_factory(service, _injected(factory, self), enter=cleans_up)
        self._app_types.discard(service)
        self._request_types.discard(service)
        self._values.pop(service, None)
        if scope == "app":
            self._app_types.add(service)
        else:
            self._request_types.add(service)

    def register_value(self, service: type[T], value: T) -> None:
        """Register an object as a service for all requests. funcmcp does not close it."""
        self._app_types.discard(service)
        self._request_types.discard(service)
        self._values[service] = value

    @contextmanager
    def override(self, service: type[T], value: T) -> Iterator[None]:
        """Replace a registered service by a value inside a ``with`` block, for tests.

        Raises:
            RegistrationError: No service of this type is registered.
        """
        if service not in self:
            raise RegistrationError(
                f"{_name(service)} is not a registered service. Register it before you override it."
            )
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
        """Whether a service of the scope ``"app"`` is registered, which `aclose` closes."""
        return bool(self._app_types)

    def __contains__(self, service: object) -> bool:
        try:
            return service in self._values or service in self._request_types or service in self._app_types
        except TypeError:  # not hashable, so not a type
            return False

    def scope(self) -> Scope:
        """Return the services of one request. The caller closes them at the end of the request."""
        return Scope(self)

    async def aclose(self) -> None:
        """Close the services of the scope ``"app"``. A later request creates them again."""
        self._locks.clear()
        if self._app is not None:
            await self._app.aclose()

    async def from_app(self, service: Any) -> Any:
        """Return a service of the scope ``"app"``. Concurrent requests get the same object."""
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
            raise RegistrationError(
                f"{_name(service)} is not a registered service. Register it with services.register_factory."
            )
        if container is None:
            raise RegistrationError(
                f"A service of the scope 'app' can't use {_name(service)}, which has the scope 'request'. "
                "Change one of the scopes."
            )
        return await container().aget(service)

    def is_app_container(self, container: svcs.Container) -> bool:
        """Return whether a container is the one of the scope ``"app"``."""
        return container is self._app


class Scope:
    """The services of one request."""

    __slots__ = ("_container", "_services")

    def __init__(self, services: Services) -> None:
        self._services = services
        self._container: svcs.Container | None = None

    async def get(self, service: Any) -> Any:
        """Return the request's service of a type. Raise RegistrationError if none is registered."""
        return await self._services.find(service, self._request_container)

    async def construct(self, cls: Callable[..., Any]) -> Any:
        """Return a new object of a class, its constructor's parameters injected by type."""
        kwargs = {name: await self.get(service) for name, service in injectable(cls, self._services).items()}
        return cls(**kwargs)

    async def aclose(self) -> None:
        """Close the services of this request."""
        if self._container is not None:
            await self._container.aclose()

    def _request_container(self) -> svcs.Container:
        if self._container is None:
            self._container = self._services.request_container()
        return self._container


_NOTHING: Any = object()


def injectable(factory: Callable[..., Any], services: Services) -> dict[str, Any]:
    """Return the injected parameters of a factory or class, with their types.

    A parameter with a default is injected only if its type is a registered service.

    Raises:
        RegistrationError: A parameter without a default has a type that is not a registered service.
    """
    try:
        parameters = inspect.signature(factory).parameters
    except ValueError:  # a class in C without a signature
        return {}
    is_class = isinstance(factory, type)
    hints = get_type_hints(factory.__init__ if is_class else getattr(factory, "__func__", factory))
    services_by_parameter = {}
    for parameter in parameters.values():
        service = hints.get(parameter.name)
        if service in services:
            services_by_parameter[parameter.name] = service
        elif parameter.default is parameter.empty and parameter.kind not in {
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        }:
            raise RegistrationError(
                f"{_name(factory)} needs {parameter.name!r}, which is not a registered service. "
                "Register its type with services.register_factory or services.register_value."
            )
    return services_by_parameter


def _injected(factory: Callable[..., Any], services: Services) -> Callable[..., Any]:
    """Return a factory that svcs can call: it takes the container that calls it, and injects the parameters."""
    make = factory
    if inspect.isgeneratorfunction(factory):
        make = contextmanager(factory)
    elif inspect.isasyncgenfunction(factory):
        make = asynccontextmanager(factory)

    async def inject(svcs_container: svcs.Container) -> Any:
        container = None if services.is_app_container(svcs_container) else lambda: svcs_container
        parameters = injectable(factory, services)
        kwargs = {name: await services.find(service, container) for name, service in parameters.items()}
        result = make(**kwargs)
        return await result if inspect.isawaitable(result) else result

    return inject


def _name(service: Any) -> str:
    return getattr(service, "__qualname__", repr(service))
