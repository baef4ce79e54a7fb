"""The worker for Python function apps. It runs in the app's own interpreter and imports nothing of funcmcp.

Written for Python 3.9 and later. The frames are described in frames.py. There are two engines:

* `RuntimeEngine` runs functions with azure-functions-runtime, Microsoft's worker library (Python 3.13 and later).
* `LibraryEngine` runs them with the azure-functions library alone: its list of functions, its converters, and a thread
  pool for functions that are not async.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import ctypes
import importlib
import inspect
import json
import logging
import os
import platform
import signal
import socket
import struct
import sys
import threading
import time
import traceback
import typing
import uuid
from typing import Any, Callable

if typing.TYPE_CHECKING:
    from collections.abc import Sequence

_LENGTH = struct.Struct(">I")
_CHUNK = 262144
_MAX_TRACE = 20000
_PARENT_SECONDS = 1.0
_PDEATHSIG = 1

_invocation_id: contextvars.ContextVar[str | None] = contextvars.ContextVar("_invocation_id", default=None)
"""The id of the call that runs."""


class Link:
    """The socket to the host. Frames go out whole, from any thread."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._lock = threading.Lock()
        self._buffer = bytearray()

    def send(self, header: dict[str, Any], parts: Sequence[bytes] = ()) -> None:
        """Send a frame; end the process if the host has gone."""
        if parts:
            header["sizes"] = [len(part) for part in parts]
        text = json.dumps(header, separators=(",", ":")).encode()
        try:
            with self._lock:
                self.connection.sendall(b"".join([_LENGTH.pack(len(text)), text, *parts]))
        except OSError:
            end_all()

    def read(self) -> list[tuple[dict[str, Any], list[bytes]]]:
        """Return the frames that have arrived; end the process if the host has gone."""
        try:
            data = self.connection.recv(_CHUNK, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            end_all()
        self._buffer += data
        return self._frames()

    def _frames(self) -> list[tuple[dict[str, Any], list[bytes]]]:
        frames = []
        buffer, start = self._buffer, 0
        while len(buffer) - start >= _LENGTH.size:
            end = start + _LENGTH.size + _LENGTH.unpack_from(buffer, start)[0]
            if len(buffer) < end:
                break
            header = json.loads(bytes(buffer[start + _LENGTH.size : end]))
            parts = []
            for size in header.get("sizes", ()):
                parts.append(bytes(buffer[end : end + size]))
                end += size
            if len(buffer) < end:
                break
            frames.append((header, parts))
            start = end
        del buffer[:start]
        return frames


class LogHandler(logging.Handler):
    """Sends log records to the host.

    Attributes:
        functions: The names of the functions that run, by the ids of their calls.
        current_id: Returns the id of the call that writes a record.
    """

    def __init__(self, link: Link) -> None:
        super().__init__()
        self._link = link
        self.functions: dict[str, str] = {}
        self.current_id: Callable[[], str | None] = _invocation_id.get
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record."""
        try:
            text = self.format(record)
        except Exception:
            self.handleError(record)
            return
        invocation = self.current_id() or _invocation_id.get() or ""
        function = self.functions.get(invocation, "")
        header = {"m": "log", "level": record.levelno, "text": text[:_MAX_TRACE], "logger": record.name}
        self._link.send({**header, "function": function, "invocation": invocation})


class Out:
    """The value of an output binding, as the function sets it."""

    def __init__(self) -> None:
        self._value: Any = None

    def set(self, value: Any) -> None:
        """Set the value."""
        self._value = value

    def get(self) -> Any:
        """Return the value."""
        return self._value


class Context:
    """What a function gets for a parameter of the type azure.functions.Context."""

    thread_local_storage = threading.local()

    def __init__(self, function_name: str, function_directory: str, invocation_id: str, trace_parent: str) -> None:
        self.function_name = function_name
        self.function_directory = function_directory
        self.invocation_id = invocation_id
        self.trace_context = _TraceContext(trace_parent)
        self.retry_context = _RetryContext()


class _TraceContext:
    trace_state = Tracestate = ""

    def __init__(self, trace_parent: str) -> None:
        self.trace_parent = self.Traceparent = trace_parent
        self.attributes: dict[str, str] = {}
        self.Attributes = self.attributes


class _RetryContext:
    retry_count = max_retry_count = 0
    exception = None


class Call(typing.NamedTuple):
    """A call of a function, as it came from the host."""

    invocation_id: str
    inputs: dict[str, Any]
    metadata: dict[str, Any]
    parts: list[bytes]
    trace_parent: str


class Engine:
    """Knows the functions of an app and runs them."""

    name = ""
    current_id: Callable[[], str | None] = staticmethod(_invocation_id.get)
    """Returns the id of the call for which the current thread works."""

    def load(self) -> list[dict[str, Any]]:
        """Import the app and return the description of each function."""
        raise NotImplementedError

    async def run(self, name: str, call: Call, begin: Callable[[], None]) -> tuple[dict[str, Any], list[bytes]]:
        """Run a function and return the header and the parts of the ``done`` frame.

        Args:
            name: The function's name.
            call: The call.
            begin: Called once before the function starts, from any thread.
        """
        raise NotImplementedError

    def is_async(self, name: str) -> bool:
        """Return whether a function runs in the event loop."""
        raise NotImplementedError


class LibraryEngine(Engine):
    """Runs functions with the azure-functions library alone."""

    def __init__(self) -> None:
        self._functions: dict[str, _Function] = {}
        threads = None
        setting = os.environ.get("PYTHON_THREADPOOL_THREAD_COUNT", "")
        if setting.isdigit():
            threads = int(setting)
        self._pool = concurrent.futures.ThreadPoolExecutor(threads)
        import azure.functions

        version = getattr(azure.functions, "__version__", "")
        self.name = "azure-functions " + version

    def load(self) -> list[dict[str, Any]]:
        """Import the app and return the description of each function."""
        rows = []
        for function in indexed_functions():
            name = function.get_function_name()
            error = None
            try:
                self._functions[name] = _Function(function)
            except Exception as fault:
                error = f"{type(fault).__name__}: {fault}"
            rows.append({"name": name, "bindings": function.get_raw_bindings(), "error": error})
        return rows

    def is_async(self, name: str) -> bool:
        """Return whether a function runs in the event loop."""
        return self._functions[name].is_async

    async def run(self, name: str, call: Call, begin: Callable[[], None]) -> tuple[dict[str, Any], list[bytes]]:
        """Run a function and return the header and the parts of the ``done`` frame."""
        function = self._functions[name]
        arguments = function.arguments(call)
        if function.is_async:
            result = await function.code(**arguments)
        else:
            context = contextvars.copy_context()

            def work() -> Any:
                begin()
                Context.thread_local_storage.invocation_id = call.invocation_id
                return context.run(function.code, **arguments)

            result = await asyncio.get_running_loop().run_in_executor(self._pool, work)
        return function.answer(result, arguments)


class _Function:
    """A function, with the converters of its bindings."""

    def __init__(self, function: Any) -> None:
        self.code = function.get_user_function()
        self.is_async = inspect.iscoroutinefunction(self.code)
        self._name = function.get_function_name()
        self._directory = os.getcwd()
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, tuple[Any, Any]] = {}
        self._return: Any = None
        self._trigger = ""
        parameters = dict(inspect.signature(self.code).parameters)
        hints = typing.get_type_hints(self.code)
        self._return_hint = hints.get("return")
        trigger = function.get_trigger()
        for binding in function.get_bindings():
            if binding.name == "$return":
                self._return = converter_of(binding.type)
                continue
            if binding.name not in parameters:
                raise ValueError(f"the function has no parameter for the binding {binding.name!r}")
            del parameters[binding.name]
            self._add_binding(binding, hints.get(binding.name), is_trigger=binding is trigger)
        self._has_context = "context" in parameters
        parameters.pop("context", None)
        _check_unbound(parameters)

    def _add_binding(self, binding: Any, hint: Any, *, is_trigger: bool) -> None:
        """Choose the converter for a binding with a parameter."""
        if _is_output(binding):
            out = _type_of_out(hint)
            self._outputs[binding.name] = (converter_of(binding.type, out), out)
        else:
            self._inputs[binding.name] = converter_of(binding.type, hint, is_trigger=is_trigger)
        if is_trigger:
            self._trigger = binding.name
            if self._return is None and binding.type != "httpTrigger":
                self._return = converter_of(binding.type, is_trigger=True)

    def arguments(self, call: Call) -> dict[str, Any]:
        """Return the arguments of a call."""
        arguments: dict[str, Any] = {}
        for name, packed in call.inputs.items():
            metadata = None
            if name == self._trigger:
                metadata = datums_of(call.metadata, call.parts)
            arguments[name] = self._inputs[name].decode(datum_of(packed, call.parts), trigger_metadata=metadata)
        if self._has_context:
            arguments["context"] = Context(self._name, self._directory, call.invocation_id, call.trace_parent)
        for name in self._outputs:
            arguments[name] = Out()
        return arguments

    def answer(self, result: Any, arguments: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        """Return the header and the parts of the ``done`` frame."""
        if self._return is None and result is not None:
            raise RuntimeError("the function has no $return binding and returned a value")
        parts: list[bytes] = []
        outputs = {}
        for name, (converter, hint) in self._outputs.items():
            value = arguments[name].get()
            if value is not None:
                outputs[name] = packed(converter.encode(value, expected_type=hint), parts)
        value = {"t": "null"}
        if self._return is not None:
            value = packed(self._encoded_return(result), parts)
        return {"m": "done", "value": value, "outputs": outputs}, parts

    def _encoded_return(self, result: Any) -> Any:
        try:
            return self._return.encode(result, expected_type=self._return_hint)
        except NotImplementedError as error:  # without a text; Microsoft's worker refuses such values, too
            kind = type(result).__name__
            raise TypeError(f"the function returned a value of type {kind}, which its binding can't send") from error


def _check_unbound(parameters: dict[str, inspect.Parameter]) -> None:
    """Raise ValueError if one of the parameters without a binding needs an argument."""
    unbound = []
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD:
            unbound.append(name)
    if unbound:
        raise ValueError("no binding has the name of the parameter {}".format(", ".join(unbound)))


class RuntimeEngine(Engine):
    """Runs functions with azure-functions-runtime, of which one release has the entry point that this needs."""

    def __init__(self) -> None:
        import azure.functions
        from azure_functions_runtime import (
            handle_event,
            invocation_id_cv,
            native_invocation,
            start_threadpool_executor,
        )
        from azure_functions_runtime.version import VERSION

        self.name = "azure-functions-runtime {}, azure-functions {}".format(
            VERSION, getattr(azure.functions, "__version__", "")
        )
        self._registry = handle_event._functions
        self._run = native_invocation.invocation_request_native
        self.current_id = invocation_id_cv.get
        self._ids: dict[str, str] = {}
        handle_event.protos = _Protos
        handle_event.load_binding_registry()
        start_threadpool_executor()

    def load(self) -> list[dict[str, Any]]:
        """Import the app and return the description of each function."""
        rows = []
        for function in indexed_functions():
            error = None
            try:
                info = self._registry.add_indexed_function(function=function, protos=_Protos)
                self._ids[info.name] = info.function_id
            except Exception as fault:
                error = f"{type(fault).__name__}: {fault}"
            rows.append({"name": function.get_function_name(), "bindings": function.get_raw_bindings(), "error": error})
        return rows

    def is_async(self, name: str) -> bool:  # noqa: ARG002 - the engines' signature
        """Return True for all: the library does not tell when a function starts in its threads."""
        return True

    async def run(
        self,
        name: str,
        call: Call,
        begin: Callable[[], None],  # noqa: ARG002 - the engines' signature
    ) -> tuple[dict[str, Any], list[bytes]]:
        """Run a function and return the header and the parts of the ``done`` frame."""
        inputs = list(datums_of(call.inputs, call.parts).items())
        metadata = datums_of(call.metadata, call.parts)
        done, value, outputs, error, trace = await self._run(
            call.invocation_id, self._ids[name], inputs, metadata, call.trace_parent
        )
        if not done:
            raise ReportedError(error, trace)
        parts: list[bytes] = []
        packed_outputs = {key: packed(datum, parts) for key, datum in outputs}
        return {"m": "done", "value": packed(value, parts), "outputs": packed_outputs}, parts


class _BindingInfo:
    undefined, string, binary, stream = range(4)
    out, inout = 1, 2


class _Protos:
    """What azure-functions-runtime reads of the message classes that a host hands to it."""

    BindingInfo = _BindingInfo


class ReportedError(Exception):
    """An exception of a function whose text and traceback the library has made already."""

    def __init__(self, text: str, trace: str) -> None:
        super().__init__(text)
        self.trace = trace


def indexed_functions() -> list[Any]:
    """Import the app's file and return its functions."""
    from azure.functions import FunctionRegister

    script = os.environ.get("PYTHON_SCRIPT_FILE_NAME", "function_app.py")
    if not os.path.exists(script):
        raise FileNotFoundError(f"{script} does not exist in {os.getcwd()}")
    module = importlib.import_module(script.removesuffix(".py"))
    apps = {id(value): value for value in vars(module).values() if isinstance(value, FunctionRegister)}
    if len(apps) != 1:
        count = "more than one" if apps else "no"
        raise ValueError(f"{script} has {count} FunctionApp at its top level")
    functions: list[Any] = next(iter(apps.values())).get_functions()
    return functions


def converter_of(kind: str, hint: Any = None, *, is_trigger: bool = False) -> Any:
    """Return the converter of a binding; functions that ask for str or bytes get the value as it is."""
    from azure.functions import meta

    library: Any = meta
    converter = library.get_binding_registry().get(kind)
    if converter is None or (hint in (str, bytes) and not is_trigger):
        return Plain
    return converter


class Plain:
    """Converts values of bindings for which the library has no converter."""

    @classmethod
    def decode(cls, data: Any, *, trigger_metadata: Any) -> Any:  # noqa: ARG003 - the signature of converters
        """Return the value as it is."""
        if data is None:
            return None
        return data.value

    @classmethod
    def encode(cls, value: Any, *, expected_type: Any) -> Any:  # noqa: ARG003 - as above
        """Return the datum for a value."""
        from azure.functions import meta

        if isinstance(value, str):
            return meta.Datum(type="string", value=value)
        if isinstance(value, (bytes, bytearray)):
            return meta.Datum(type="bytes", value=bytes(value))
        if value is None:
            return meta.Datum(type=None, value=None)
        return meta.Datum(type="json", value=json.dumps(value))


def _is_output(binding: Any) -> bool:
    direction = getattr(binding, "direction", None)
    return getattr(direction, "value", direction) == 1


def _type_of_out(hint: Any) -> Any:
    """Return T of a hint Out[T]."""
    arguments = typing.get_args(hint)
    if not arguments:
        return None
    return arguments[0]


def datums_of(values: dict[str, Any], parts: list[bytes]) -> dict[str, Any]:
    """Return values of a frame as the library's Datums, by name."""
    return {name: datum_of(value, parts) for name, value in values.items()}


def datum_of(value: dict[str, Any], parts: list[bytes]) -> Any:
    """Return a value of a frame as the library's Datum."""
    from azure.functions import meta

    kind = value["t"]
    if kind == "null":
        return meta.Datum(None, None)
    if kind == "http":
        return meta.Datum(_http_request(value["v"], parts[value["p"]]), "http")
    if "p" not in value:
        return meta.Datum(value["v"], kind)
    part = parts[value["p"]]
    if kind == "bytes":
        return meta.Datum(part, kind)
    return meta.Datum(part.decode(), kind)


def _http_request(request: dict[str, Any], body: bytes) -> dict[str, Any]:
    from azure.functions import meta

    def texts(values: dict[str, str]) -> dict[str, Any]:
        return {name: meta.Datum(text, "string") for name, text in values.items()}

    return {
        "method": meta.Datum(request["method"], "string"),
        "url": meta.Datum(request["url"], "string"),
        "headers": texts(request["headers"]),
        "query": texts(request["query"]),
        "params": texts(request["params"]),
        "body": meta.Datum(body, "bytes"),
    }


def packed(datum: Any, parts: list[bytes]) -> dict[str, Any]:
    """Return a Datum as a value of a frame."""
    if datum is None or datum.type is None or datum.value is None:
        return {"t": "null"}
    kind, value = datum.type, datum.value
    if kind == "http":
        return _packed_http(value, parts)
    if kind == "bool":
        return {"t": "json", "v": json.dumps(value)}
    if kind in ("int", "double"):
        return {"t": kind, "v": value}
    if kind in ("dict", "list"):
        kind, value = "json", json.dumps(value)
    elif kind.startswith("collection_"):
        kind, value = "json", json.dumps(value, default=str)
    if not isinstance(value, bytes):
        value = str(value).encode("utf-8", "replace")
    parts.append(value)
    return {"t": kind, "p": len(parts) - 1}


def _packed_http(response: dict[str, Any], parts: list[bytes]) -> dict[str, Any]:
    body = response["body"].value
    if not isinstance(body, bytes):
        body = str(body).encode()
    parts.append(body)
    headers = [[name, datum.value] for name, datum in response["headers"].items()]
    for cookies in response.get("cookies") or ():
        headers += [["set-cookie", morsel.OutputString()] for morsel in cookies.values()]
    return {"t": "http", "v": {"status": int(response["status_code"].value), "headers": headers}, "p": len(parts) - 1}


class Program:
    """Answers the host's frames."""

    def __init__(self, link: Link, engine: Engine, log: LogHandler) -> None:
        self._link = link
        self._engine = engine
        self._log = log
        log.current_id = engine.current_id
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def receive(self) -> None:
        """Act on the frames that have arrived."""
        for header, parts in self._link.read():
            message = header["m"]
            if message == "invoke":
                self._tasks[header["id"]] = asyncio.ensure_future(self._run(header, parts))
            elif message == "cancel":
                self._cancel(header["id"])
            elif message == "ping":  # the answer is behind the beginnings of the calls before it
                asyncio.get_running_loop().call_soon(self._link.send, {"m": "pong"})

    def _cancel(self, number: int) -> None:
        task = self._tasks.get(number)
        if task is not None:
            task.cancel()
            task.add_done_callback(lambda _: self._tasks.pop(number, None))  # one that has not begun runs nothing

    async def _run(self, header: dict[str, Any], parts: list[bytes]) -> None:
        number, name = header["id"], header["f"]
        call = Call(str(uuid.uuid4()), header["inputs"], header["meta"], parts, header.get("trace", ""))
        _invocation_id.set(call.invocation_id)
        self._log.functions[call.invocation_id] = name

        def begin() -> None:
            self._link.send({"m": "begun", "id": number})

        try:
            if self._engine.is_async(name):
                begin()  # the function may block the loop, or end the process
            answer, answer_parts = await self._engine.run(name, call, begin)
            answer["id"] = number
            self._link.send(answer, answer_parts)
        except asyncio.CancelledError:
            self._link.send({"m": "error", "id": number, "error": "The call was cancelled."})
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, GeneratorExit)):
                raise
            self._link.send({"m": "error", "id": number, **described(error)})
        finally:
            self._tasks.pop(number, None)
            del self._log.functions[call.invocation_id]


def described(error: BaseException) -> dict[str, str]:
    """Return the text and the traceback of an exception."""
    if isinstance(error, ReportedError):
        return {"error": str(error), "trace": error.trace[-_MAX_TRACE:]}
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:
        text = type(error).__name__
    try:
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    except RecursionError:  # groups in groups
        trace = "".join(traceback.format_tb(error.__traceback__))
    return {"error": text[:_MAX_TRACE], "trace": trace[-_MAX_TRACE:]}


def loading_error(error: BaseException) -> str:
    """Return one line about an app that can't be loaded, with the line of the app's own code."""
    text = "{}: {}".format(type(error).__name__, " ".join(str(error).split()))
    folder = os.path.join(os.getcwd(), "")
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(folder) and "site-packages" not in frame.filename:
            text = f"{frame.filename[len(folder) :]}, line {frame.lineno}: {text}"
            break
    if isinstance(error, ModuleNotFoundError):
        text += missing_module_advice(error.name or "")
    return text.rstrip(".") + "."


def missing_module_advice(name: str) -> str:
    """Return what to do about a module that is missing: another one of its package may be the app's own."""
    package = name.partition(".")[0]
    if "." in name and os.path.isdir(os.path.join(os.getcwd(), package)):
        return ". Correct the import: the app has no such module"
    folder = os.path.join(os.getcwd(), ".venv")
    install = (
        f"Run pip install -r requirements.txt into {folder}, after you have added the package if it is not listed there"
    )
    if not os.path.isfile("requirements.txt"):
        file = "pyproject.toml" if os.path.isfile("pyproject.toml") else "requirements.txt"
        install = f"Install its package into {folder}, and list it in {file}"
    return f". {install}, or correct the import if the module is the app's own"


def make_engine(choice: str) -> Engine:
    """Return the engine of a name, or the one that fits the interpreter where the name is "auto"."""
    if choice == "library" or (choice == "auto" and sys.version_info < (3, 13)):
        return LibraryEngine()
    try:
        return RuntimeEngine()
    except (ImportError, AttributeError):
        if choice == "runtime":
            raise
        return LibraryEngine()


def end_with_parent(parent: int) -> None:
    """End the process when its parent is another one than at the start, even if the event loop is blocked."""
    while os.getppid() == parent:
        time.sleep(_PARENT_SECONDS)
    end_all()


def end_all() -> None:
    """End this process and those that the app has started."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os.killpg(0, signal.SIGKILL)


def watch_parent() -> None:
    """Make sure that this process does not outlive the host."""
    parent = os.getppid()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    threading.Thread(target=end_with_parent, args=(parent,), name="host watch", daemon=True).start()


def main() -> None:
    """Load the app of the working folder and serve its functions."""
    watch_parent()
    link = Link(socket.socket(fileno=int(sys.argv[2])))
    os.set_inheritable(link.connection.fileno(), False)
    folder = os.getcwd()
    packages = os.path.join(folder, ".python_packages", "lib", "site-packages")
    if os.path.isdir(packages):
        sys.path.insert(0, packages)
    sys.path.insert(0, folder)
    more_packages = os.environ.pop("FUNCMCP_APP_PACKAGES", "")
    sys.path.extend(filter(None, more_packages.split(os.pathsep)))  # the app's own packages come first
    root = logging.getLogger()
    log = LogHandler(link)
    root.addHandler(log)
    root.setLevel(int(os.environ.get("FUNCMCP_APP_LOG_LEVEL", "20")))
    logging.getLogger("azure.functions").setLevel(logging.WARNING)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(link, sys.argv[1], log))


async def serve(link: Link, choice: str, log: LogHandler) -> None:
    """Load the app in the event loop, as apps expect, and answer frames until the host goes."""
    try:
        engine = make_engine(choice)
        functions = engine.load()
    except BaseException as error:
        link.send({"m": "failed", "error": loading_error(error), "trace": described(error)["trace"]})
        return
    runtime = f"Python {platform.python_version()}, {engine.name}"
    program = Program(link, engine, log)
    asyncio.get_running_loop().add_reader(link.connection, program.receive)
    link.send({"m": "ready", "functions": functions, "http": None, "runtime": runtime})
    await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    main()
