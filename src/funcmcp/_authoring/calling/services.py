"""Services: objects that functions get through the type of a parameter.

How it works: `Services` belongs to a server and holds values and factories. A `Scope` holds the services that end
together: each call has one for its services of the scope ``"request"``, and each event loop has one for those of the
scope ``"app"``, because connections and locks of one loop can't be used in another.

A service is looked up in three steps. A value or an override is returned at once. A service of the scope ``"app"``
comes from the `_AppScope` of the event loop, where a lock for each factory ensures that it is created once. Every other
service comes from the scope of the call. A factory's own parameters are injected in the same way, from the scope that
calls it, so a service of the scope ``"app"`` can't depend on one of a request.

A scope closes its services in the reverse order of their creation. A generator gets the exception with which the call
ends at its ``yield``, and what it raises itself is how the call ends then: see `Scope.aclose`.

What a factory opens may belong to its thread, as connections of sqlite3 do. The factories of a call that are not async
therefore run where the function of the call runs, and their services are closed there: in one worker thread for a plain
function (`Scope.use_thread`), and in the event loop for an async one. A call may end before its plain function does,
because its time is up or the client has cancelled it. Its services are then closed when the function has returned.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_type_hints
from weakref import WeakKeyDictionary

from funcmcp._authoring.calling.lifespans import Lifespans
from funcmcp._authoring.calling.threads import CallThread, Threads
from funcmcp._authoring.calling.unknown_arguments import DEFAULT_RULES, ArgumentRules
from funcmcp._authoring.signatures.late_annotations import annotations_of, read_signature
from funcmcp._authoring.signatures.partials import is_async
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.limits import Limits
from funcmcp._server.log import log_exception, quote
from funcmcp._server.run import current_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import TypeAlias

    from funcmcp._auth.grants import Grant
    from funcmcp._state.caller_values import CallerValues
    from funcmcp._state.uploads import UploadStore

    Manager: TypeAlias = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]

T = TypeVar("T")

_log = logging.getLogger("funcmcp")

_NO_VALUE: Any = object()
"""Stands for the value of a service that a factory creates."""


class Services:
    """The services of one server, its lifespans, and the worker threads of its plain functions.

    A factory's own parameters are also injected by type. A factory may be async. It may also be a generator, async or
    not, that yields the service once and then cleans up: at the end of the request, or for the scope ``"app"`` when the
    server stops. `contextlib.contextmanager` and ``asynccontextmanager`` may decorate it. At the end of a request, its
    ``yield`` raises the exception with which the call has failed, so a session of a database can roll back:

    ```python
    async def session(engine: AsyncEngine) -> AsyncIterator[AsyncSession]:
        async with AsyncSession(engine) as session, session.begin():
            yield session
    ```

    An exception that a factory raises after its ``yield`` is a failure of the call.

    Args:
        argument_rules: How tools and prompts read their arguments, unless their own options differ.
        result_bytes: Bytes of the items of a generator at most; `Limits.result_bytes`.

    Example:
        ```python
        mcp.services.register_value(Settings, Settings())
        mcp.services.register_factory(Database, Database.connect, scope="app")
        ```
    """

    def __init__(self, argument_rules: ArgumentRules = DEFAULT_RULES, result_bytes: int = Limits.result_bytes) -> None:
        self.argument_rules = argument_rules
        self.result_bytes = result_bytes
        self.threads: Threads = Threads()
        self._registry = _Registry(self.threads)
        self.lifespans: Lifespans = Lifespans(self._registry.close_app)
        self.open_values: Callable[[], CallerValues] | None = None
        self.uploads: UploadStore | None = None
        self.uses_state: bool = False
        self.needed_grants: list[tuple[str, Grant]] = []  # with the names of the tools
        self.runtime: Any = None  # the `ServerRuntime`, for providers of a layer above it

    def register_factory(
        self, service: type[T], factory: Callable[..., Any], *, scope: Literal["request", "app"] = "request"
    ) -> None:
        """Register a function that creates a service.

        Args:
            service: The type of the parameters that get the service.
            factory: Returns the service; see the class for the forms that it may have.
            scope: ``"request"`` creates one service for each request, ``"app"`` one for all requests of an event loop.

        Raises:
            RegistrationError: The scope is unknown.
        """
        if scope not in {"request", "app"}:
            raise RegistrationError(f"scope must be 'request' or 'app', not {scope!r}.")
        self._registry.add_factory(service, _Factory(factory, scope))

    def register_value(self, service: type[T], value: T) -> None:
        """Register an object as a service for all requests. funcmcp does not close it."""
        self._registry.add_value(service, value)

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
        values = self._registry.values
        before = values.get(service, _NO_VALUE)
        values[service] = value
        try:
            yield
        finally:
            if before is _NO_VALUE:
                del values[service]
            else:
                values[service] = before

    @property
    def has_app_scope(self) -> bool:
        """Whether a service of the scope ``"app"`` is registered, which ends with the server."""
        return self._registry.has_app_scope

    def __contains__(self, service: object) -> bool:
        return service in self._registry

    def scope(self) -> Scope:
        """Return new services for one request, for code that is not a feature, such as middleware and custom routes.

        Example:
            ```python
            async with mcp.services.scope() as services:
                session = await services.get(AsyncSession)
            ```
        """
        return Scope(self._registry, self.threads)

    async def aclose(self) -> None:
        """Close the services of the scope ``"app"`` in the running event loop, unless it has users of the lifespans."""
        if not self.lifespans.has_users:
            await self.lifespans.close_services()


class _Registry:
    """What is registered, and the services of the scope ``"app"`` that are open.

    Args:
        threads: The worker threads of the server.

    Attributes:
        values: The values and overrides by type.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self.values: dict[Any, Any] = {}
        self._factories: dict[Any, _Factory] = {}
        self._apps: WeakKeyDictionary[asyncio.AbstractEventLoop, _AppScope] = WeakKeyDictionary()

    def __contains__(self, service: object) -> bool:
        try:
            return service in self.values or service in self._factories
        except TypeError:  # not hashable, so not a type
            return False

    @property
    def has_app_scope(self) -> bool:
        """Whether a factory has the scope ``"app"``."""
        return any(factory.scope == "app" for factory in self._factories.values())

    def add_factory(self, service: Any, factory: _Factory) -> None:
        """Register a factory in place of what was registered."""
        self.values.pop(service, None)
        self._factories[service] = factory
        self._forget_parameters()

    def add_value(self, service: Any, value: Any) -> None:
        """Register a value in place of what was registered."""
        self._factories.pop(service, None)
        self.values[service] = value
        self._forget_parameters()

    def factory_of(self, service: Any) -> _Factory:
        """Return the factory of a service; raise RegistrationError if none is registered."""
        factory = self._factories.get(service)
        if factory is None:
            raise RegistrationError(
                f"{_name(service)} is not a registered service. Register it with services.register_factory."
            )
        return factory

    def parameters_of(self, factory: _Factory) -> dict[str, Any]:
        """Return the injected parameters of a factory, with their types.

        Raises:
            RegistrationError: A parameter is not a registered service, or the service depends on itself.
        """
        if factory.parameters is None:
            parameters = injectable(factory.function, self)
            self._refuse_circle(factory, (factory,))
            factory.parameters = parameters
        return factory.parameters

    def app_scope(self) -> _AppScope:
        """Return the services of the scope ``"app"`` in the running event loop."""
        loop = asyncio.get_running_loop()
        app = self._apps.get(loop)
        if app is None:
            app = self._apps[loop] = _AppScope(self, self._threads)
        return app

    async def close_app(self) -> None:
        """Close the services of the scope ``"app"`` in the running event loop. A later request creates them again."""
        app = self._apps.pop(asyncio.get_running_loop(), None)
        if app is not None:
            await app.aclose()

    def _refuse_circle(self, first: _Factory, path: tuple[_Factory, ...]) -> None:
        """Raise RegistrationError if the last factory of a path needs the first one."""
        for service in injectable(path[-1].function, self).values():
            needed = self._factories.get(service)
            if needed is first:
                names = " -> ".join(_name(step.function) for step in (*path, first))
                raise RegistrationError(f"A service can't depend on itself: {names}.")
            if needed is not None and needed.scope == first.scope and needed not in path:
                self._refuse_circle(first, (*path, needed))

    def _forget_parameters(self) -> None:
        """Read the parameters of all factories again, because the types that are injected have changed."""
        for factory in self._factories.values():
            factory.parameters = None


class _Factory:
    """A registered factory.

    Attributes:
        function: The author's function or class.
        scope: ``"request"`` or ``"app"``.
        parameters: Its injected parameters; None until they are read.
        open: Returns a context manager around the service, if the function is a generator or was one before
            `contextlib` decorated it.
    """

    __slots__ = ("function", "open", "parameters", "scope")

    def __init__(self, function: Callable[..., Any], scope: str) -> None:
        self.function: Callable[..., Any] = function
        self.scope: str = scope
        self.parameters: dict[str, Any] | None = None
        self.open: Callable[..., Manager] | None = None
        if inspect.isasyncgenfunction(function):
            self.open = asynccontextmanager(function)
        elif inspect.isgeneratorfunction(function):
            self.open = contextmanager(function)
        elif _is_context_manager(function):
            self.open = function


class Scope:
    """The services of one request. An ``async with`` statement closes them with the exception that ends its block."""

    __slots__ = ("_cancellations", "_instances", "_managers", "_registry", "_thread", "_threads")

    def __init__(self, registry: _Registry, threads: Threads) -> None:
        self._registry = registry
        self._threads = threads
        self._thread: CallThread | None = None
        self._instances: dict[_Factory, Any] = {}
        self._managers: list[Manager] = []
        self._cancellations = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        await self.aclose(error)

    async def get(self, service: Any) -> Any:
        """Return the request's service of a type. Raise RegistrationError if none is registered."""
        value = self._registry.values.get(service, _NO_VALUE)
        if value is not _NO_VALUE:
            return value
        factory = self._registry.factory_of(service)
        if factory.scope == "app":
            return await self._registry.app_scope().get(service)
        return await self._instance(factory)

    async def construct(self, cls: Callable[..., Any]) -> Any:
        """Return a new object of a class, its constructor's parameters injected by type."""
        kwargs = {name: await self.get(service) for name, service in injectable(cls, self._registry).items()}
        return await self.call_factory(cls, kwargs)

    def use_thread(self) -> None:
        """Run factories that are not async in one worker thread, which is that of the call's plain function."""
        self._thread = CallThread(self._threads)

    async def call_factory(self, factory: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        """Call a factory in the thread that it belongs to, and return its value, which may be awaitable."""
        if self._thread is None or is_async(factory):
            return factory(**kwargs)
        return await self._thread.run(factory, kwargs)

    def new_scope(self) -> Scope:
        """Return another scope, which closes its services itself."""
        return Scope(self._registry, self._threads)

    async def run_function(self, function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        """Call a plain function in a worker thread: in that of the factories, or if services wait for its end."""
        if self._thread is not None and (self._thread.has_started or self._managers):
            return await self._thread.run(function, kwargs)
        return await self._threads.run(function, kwargs)

    @property
    def is_cancelled(self) -> bool:
        """Whether the task was cancelled since the first service that must be closed was opened in it."""
        return bool(self._managers) and _cancellations() > self._cancellations

    async def shared(self, key: object, factory: Callable[[], Any]) -> Any:
        """Return the service of the scope ``"app"`` under a key, which a factory creates when it is first needed."""
        if key not in self._registry:
            self._registry.add_factory(key, _Factory(factory, "app"))
        return await self.get(key)

    async def enter(self, manager: Manager) -> Any:
        """Enter a context manager, which is left as a service is closed; return its value."""
        if isinstance(manager, AbstractAsyncContextManager):
            value = await manager.__aenter__()
            self._add(manager)
        elif self._thread is None:
            value = manager.__enter__()
            self._add(manager)
        else:
            in_thread = _ManagerInThread(manager, self._thread)
            self._add(in_thread)  # before it is entered: the call may end while its thread enters it
            value = await in_thread.__aenter__()
        return value

    def _add(self, manager: Manager) -> None:
        """Note a manager that has to be left."""
        if not self._managers:
            self._cancellations = _cancellations()
        self._managers.append(manager)

    async def aclose(self, error: BaseException | None = None) -> None:
        """Close the services, the newest first. A client that cancels the call meanwhile does not interrupt this.

        Args:
            error: The exception with which the call ends, or None if it has succeeded. Each generator gets it at its
                ``yield``. A generator that swallows it does not hide it from the others.

        Raises:
            BaseException: A generator raised an exception other than *error*. The generators that are closed after it
                get this exception.
        """
        end = error
        run = current_run.get() if self._managers else None
        if run is not None:
            run.clean_ups += 1
        try:
            while self._managers:
                end = await self._close(self._managers.pop(), end)
            if end is not None and end is not error:
                raise end
        finally:
            if run is not None:
                run.clean_ups -= 1
            if self._thread is not None:
                self._thread.close()
            self._instances.clear()
            end = error = None  # an exception in a local variable refers to itself through its traceback

    async def _close(self, manager: Manager, end: BaseException | None) -> BaseException | None:
        """Close a service, or let the thread of the call do so if that is abandoned and may use it still."""
        if self._thread is None or not self._thread.is_abandoned or isinstance(manager, _ManagerInThread):
            return await _close(manager, end)
        self._thread.run_later(_close_in_loop, {"manager": manager, "end": end, "loop": asyncio.get_running_loop()})
        return end

    async def _instance(self, factory: _Factory) -> Any:
        """Return the object of a factory in this scope."""
        if factory not in self._instances:
            self._instances[factory] = await self._create(factory)
        return self._instances[factory]

    async def _create(self, factory: _Factory) -> Any:
        parameters = self._registry.parameters_of(factory)
        kwargs = {name: await self.get(service) for name, service in parameters.items()}
        if factory.open is None:
            instance = await self.call_factory(factory.function, kwargs)
            return await instance if inspect.isawaitable(instance) else instance
        return await self.enter(factory.open(**kwargs))


class _AppScope(Scope):
    """The services of the scope ``"app"`` in one event loop."""

    __slots__ = ("_locks",)

    def __init__(self, registry: _Registry, threads: Threads) -> None:
        super().__init__(registry, threads)
        self._locks: dict[_Factory, asyncio.Lock] = {}

    async def get(self, service: Any) -> Any:
        """Return the service of a type. Concurrent requests get the same object."""
        value = self._registry.values.get(service, _NO_VALUE)
        if value is not _NO_VALUE:
            return value
        factory = self._registry.factory_of(service)
        if factory.scope != "app":
            raise RegistrationError(
                f"A service of the scope 'app' can't use {_name(service)}, which has the scope 'request'. "
                "Change one of the scopes."
            )
        self._registry.parameters_of(factory)  # before the lock: a service that needs itself would wait for itself
        async with self._locks.setdefault(factory, asyncio.Lock()):
            return await self._instance(factory)


class _ManagerInThread(AbstractAsyncContextManager[Any]):
    """A context manager that is entered and left in the thread of a call."""

    __slots__ = ("_is_entered", "_manager", "_thread")

    def __init__(self, manager: AbstractContextManager[Any], thread: CallThread) -> None:
        self._manager = manager
        self._thread = thread
        self._is_entered = False

    async def __aenter__(self) -> Any:
        return await self._thread.run(self._enter, {})

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if self._thread.is_abandoned or isinstance(error, GeneratorExit):  # nothing may be awaited after that
            self._thread.run_later(self._leave_late, {"error": error})
            return
        try:
            failure = await self._thread.run(self._leave, {"error": error})
        except asyncio.CancelledError:
            self._thread.run_later(self._leave_late, {"error": error})  # the thread may not have got to `_leave`
            raise
        if failure is not None:
            try:
                raise failure
            finally:
                failure = None  # an exception in a local variable refers to itself through its traceback

    def _enter(self) -> Any:
        value = self._manager.__enter__()
        self._is_entered = True
        return value

    def _leave(self, error: BaseException | None) -> BaseException | None:
        """Leave the manager, and return the exception that it raises: it may be one that controls the event loop."""
        if not self._is_entered:
            return None
        self._is_entered = False
        traceback = None if error is None else error.__traceback__
        try:
            self._manager.__exit__(None if error is None else type(error), error, traceback)
        except BaseException as failure:  # noqa: BLE001 - `Scope.aclose` raises it after the other services are closed
            return failure
        return None

    def _leave_late(self, error: BaseException | None) -> None:
        """Leave the manager after the end of the call, which can't fail any more."""
        failure = self._leave(error)
        if failure is not None and failure is not error:
            _log_late(self._manager, failure)


def _cancellations() -> int:
    """Return how often the current task was cancelled. A call may begin while its task cleans up after that."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


async def _close(manager: Manager, end: BaseException | None) -> BaseException | None:
    """Close a service; return the exception with which the call ends after that, or None if it still succeeds."""
    kind = None if end is None else type(end)
    traceback = None if end is None else end.__traceback__
    try:
        if isinstance(manager, AbstractAsyncContextManager):
            await manager.__aexit__(kind, end, traceback)
        else:
            manager.__exit__(kind, end, traceback)
    except BaseException as error:  # noqa: BLE001 - `Scope.aclose` raises it after the other services are closed
        return error
    return end


def _close_in_loop(manager: Manager, end: BaseException | None, loop: asyncio.AbstractEventLoop) -> None:
    """Close a service whose call has ended before its thread, which calls this, and wait until it is closed."""
    closing = _close(manager, end)
    try:
        failure = asyncio.run_coroutine_threadsafe(closing, loop).result()
    except RuntimeError:  # the loop is closed
        closing.close()
        return
    if failure is not None and failure is not end:
        _log_late(manager, failure)


def _log_late(manager: object, failure: BaseException) -> None:
    """Log the failure of a service that was closed after the end of its call, which can't fail any more."""
    name = quote(type(manager).__qualname__)
    log_exception(_log, failure, "%s was not closed: its call has ended before the function.", (name,))


def _is_context_manager(function: Callable[..., Any]) -> bool:
    """Return whether `contextlib.contextmanager` or ``asynccontextmanager`` decorates a function."""
    generator = inspect.unwrap(function)
    return inspect.isgeneratorfunction(generator) or inspect.isasyncgenfunction(generator)


def injectable(factory: Callable[..., Any], registry: _Registry) -> dict[str, Any]:
    """Return the injected parameters of a factory or class, with their types.

    A parameter with a default is injected only if its type is a registered service.

    Raises:
        RegistrationError: A parameter without a default has a type that is not a registered service.
    """
    try:
        parameters = read_signature(factory).parameters
    except ValueError:  # a class in C without a signature
        return {}
    hints = _parameter_types(factory)
    services_by_parameter = {}
    for parameter in parameters.values():
        service = hints.get(parameter.name)
        if service in registry:
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


def _parameter_types(factory: Callable[..., Any]) -> dict[str, Any]:
    """Return the resolved type hints of parameters. That of the result may be imported for type checkers only."""
    function: Any = getattr(factory, "__func__", factory)
    if isinstance(factory, type):
        function = factory.__init__  # type: ignore[misc]
    annotations = dict(annotations_of(function))
    annotations.pop("return", None)
    try:
        return get_type_hints(
            SimpleNamespace(__annotations__=annotations), getattr(inspect.unwrap(function), "__globals__", {})
        )
    except NameError as error:
        raise RegistrationError(
            f"An annotation of {_name(factory)} uses the unknown name {error.name!r}. "
            "Import it at run time, not only under TYPE_CHECKING."
        ) from None


def _name(service: Any) -> str:
    return getattr(service, "__qualname__", repr(service))
