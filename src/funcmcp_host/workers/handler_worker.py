"""A custom handler as a worker: a program of the app that gets invocations as JSON.

How it works. The worker starts the program with a port, waits until that accepts connections, and takes the functions
from the function.json files. A call is ``POST /FUNCTION`` to the port. Where host.json forwards requests, a function
that has an HTTP trigger and response alone gets the request as it is.

A call whose connection is refused has not begun, and is sent again after a pause. A connection that breaks may have had
an effect, so that the call fails. A program that does not answer a call in its time is ended, as on Azure: `ping` says
that it hangs. `Supervised` starts the next one.

Source: azure-functions-host, DefaultHttpWorkerService (path, headers, statuses), HttpFunctionInvocationDispatcher
(restarts), RetryProxyHandler (tries and delays), and MediaTypeFormatter of .NET (the content types that it reads).
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx2

from funcmcp._server.log import quote as quoted
from funcmcp_host.app_rules.handler_rules import forwarding
from funcmcp_host.app_rules.model import read_app
from funcmcp_host.folder import FolderError
from funcmcp_host.function_json import function_folders
from funcmcp_host.handler_program import accepts, free_port, listens, read_program
from funcmcp_host.workers.child_process import ChildProcess, app_log, printable
from funcmcp_host.workers.handler_payload import handler_function, read_answer, request_body
from funcmcp_host.workers.worker import FunctionFailed, FunctionInfo, LoadFailed, Outcome, Value, WorkerGone

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from funcmcp_host.folder import Folder
    from funcmcp_host.handler_program import HandlerProgram
    from funcmcp_host.workers.handler_payload import HandlerFunction
    from funcmcp_host.workers.worker import Invocation

_log = logging.getLogger("funcmcp.host")

_HOST_VERSION = "4.1000.0"
_AGENT = f"Azure-Functions-Host/{_HOST_VERSION}"
_JSON_TYPES = {"application/json", "text/json"}
_OF_THE_CONNECTION = {
    *("connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer"),
    *("transfer-encoding", "upgrade"),
}
_PAUSES = (0.05, 0.1, 0.2, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25)
"""Seconds after which a call whose connection is refused is sent again."""

_END_SECONDS = 2.0
"""How long a call whose connection has broken waits for the end of the process, which says more."""

_MAX_ANSWER = 256 * 1024 * 1024
"""Bytes of an answer."""

_MAX_TEXT = 20000
"""Characters of a line for the log."""

_MAX_SHOWN = 100
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=0)


class HandlerWorker:
    """A custom handler that gets invocations as JSON.

    Args:
        folder: The app.
        address: The host and the port on which the app is served.
        python: What ``python`` in host.json is; None for the ``.venv`` of the app, or this interpreter.
        node: What ``node`` in host.json is; None for the one on the PATH.

    Attributes:
        functions: The app's functions.
        http_url: None: requests are sent with the invocation.
        description: The program, for people.
    """

    http_url: str | None = None

    def __init__(self, folder: Folder, address: str, *, python: str | None = None, node: str | None = None) -> None:
        self._folder = folder
        self._address = address
        self._python, self._node = python, node
        self._child: ChildProcess | None = None
        self._ended: asyncio.Task[None] | None = None
        self._transport = httpx2.AsyncHTTPTransport(trust_env=False, limits=_LIMITS)
        self._url = ""
        self._plans: dict[str, HandlerFunction] = {}
        self._warned: set[str] = set()
        self._open = 0
        self._finished = asyncio.Event()
        self.functions: list[FunctionInfo] = []
        self.description = "custom handler"

    @property
    def pid(self) -> int | None:
        """The process id; None before the start."""
        return None if self._child is None else self._child.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process, or the negative number of the signal that ended it; None while it runs."""
        return None if self._child is None else self._child.exit_code

    @property
    def ended(self) -> asyncio.Future[None]:
        """Done when the process has ended."""
        if self._ended is None:
            raise RuntimeError("The worker was not started.")
        return self._ended

    async def start(self) -> None:
        """Start the program, and read the functions.

        Raises:
            LoadFailed: host.json has no program that can be started, or it ends or does not listen in time.
        """
        app = read_app(self._folder.path, {})
        try:
            program = read_program(app, forwards=False)
        except FolderError as error:
            raise LoadFailed(str(error)) from error
        forwards = forwarding(app.host) == "triggers"
        folders = function_folders(self._folder.path)
        self.functions = [FunctionInfo(folder.name, tuple(folder.bindings), folder.error) for folder in folders]
        self._plans = {info.name: handler_function(info, forwards=forwards) for info in self.functions}
        self.description = f"custom handler {program.name}"
        try:
            await self._start_program(program)
        except BaseException:
            await self.aclose()
            raise

    async def _start_program(self, program: HandlerProgram) -> None:
        port = program.port or free_port()
        if await accepts(port):
            raise LoadFailed(f"Another program listens on port {port}, which host.json gives to the custom handler.")
        command = program.command(self._folder, port, self._address, python=self._python, node=self._node)
        child = self._child = ChildProcess(command)
        await child.start([])
        ended = self._ended = asyncio.create_task(child.wait())
        if not await listens(port, ended, program.start_seconds):
            raise LoadFailed(program.start_failure(child.exit_code, port, program.start_seconds))
        self._url = f"http://127.0.0.1:{port}"

    async def invoke(
        self, invocation: Invocation, seconds: float | None, overdue: Callable[[], Awaitable[None]] | None = None
    ) -> Outcome:
        """Call a function; see `SingleWorker`. A call begins when it is sent, so that none waits for *overdue*."""
        del overdue
        plan = self._plans.get(invocation.function)
        if plan is None:
            raise FunctionFailed(f"The app has no function {invocation.function!r}.")
        self._open += 1
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(invocation, plan)
        except httpx2.TransportError as error:
            await asyncio.wait({self.ended}, timeout=_END_SECONDS)
            if self.ended.done():
                raise WorkerGone(begun=True) from error
            raise FunctionFailed(f"The custom handler broke off the connection ({type(error).__name__}).") from error
        finally:
            self._open -= 1
            if not self._open:
                self._finished.set()

    async def ping(self, seconds: float) -> bool:  # noqa: ARG002 - of SingleWorker
        """Return False: it is asked after a call past its time, and Azure ends a custom handler then."""
        return False

    async def idle(self) -> None:
        """Wait until no call is open, or the process has ended."""
        while self._open and not self.ended.done():
            self._finished.clear()
            waiting = asyncio.create_task(self._finished.wait())
            tasks: list[asyncio.Future[Any]] = [waiting, self.ended]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()

    async def aclose(self) -> None:
        """End the process."""
        if self._child is not None:
            await self._child.aclose(0)
        if self._ended is not None:
            await asyncio.wait({self._ended})
        await self._transport.aclose()

    async def _exchange(self, invocation: Invocation, plan: HandlerFunction) -> Outcome:
        invocation_id = invocation.id or str(uuid.uuid4())
        headers = {
            "X-Azure-Functions-HostVersion": _HOST_VERSION,
            "X-Azure-Functions-InvocationId": invocation_id,
        }
        if invocation.trace_parent:
            headers["traceparent"] = invocation.trace_parent
        forwarded = _http_value(invocation) if plan.is_forwarded else None
        if forwarded is not None:
            response, body = await self._send(_forwarded_request(self._url, forwarded, headers))
            return Outcome(_response_value(response, body))
        headers |= {"User-Agent": _AGENT, "Content-Type": "application/json; charset=utf-8"}
        url = f"{self._url}/{quote(invocation.function, safe='')}"
        response, body = await self._send(
            httpx2.Request("POST", url, headers=headers, content=request_body(invocation))
        )
        _check_response(response, body)
        answer = read_answer(body, plan)
        if answer.is_empty and invocation.function not in self._warned:
            self._warned.add(invocation.function)
            _log.warning(
                "The custom handler's answer for %s has none of Outputs, Logs and ReturnValue.", invocation.function
            )
        self._write_logs(answer.logs, invocation.function, invocation_id)
        return answer.outcome

    def _write_logs(self, lines: Any, function: str, invocation_id: str) -> None:
        if self._folder.options.log_level > logging.INFO:
            return
        extra = {"function": function, "invocation": invocation_id}
        for line in lines:
            app_log.info("%s", printable(line[:_MAX_TEXT]), extra=extra)

    async def _send(self, request: httpx2.Request) -> tuple[httpx2.Response, bytes]:
        """Return the response and its body. A request whose connection is refused is sent again."""
        for pause in (*_PAUSES, None):
            if self.ended.done():
                raise WorkerGone(begun=False)
            try:
                response = await self._transport.handle_async_request(request)
            except httpx2.ConnectError as error:
                if pause is None:
                    raise FunctionFailed("The custom handler runs and refuses connections.") from error
                await asyncio.sleep(pause)
            else:
                return response, await _body_of(response)
        raise AssertionError


async def _body_of(response: httpx2.Response) -> bytes:
    """Return the body of a response; raise FunctionFailed if it is too large."""
    body = bytearray()
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)  # noqa: S101 - narrows the type of the transport's answer
    try:
        async for part in stream:
            body += part
            if len(body) > _MAX_ANSWER:
                raise FunctionFailed(f"The custom handler's answer has more than {_MAX_ANSWER} bytes.")
    finally:
        await stream.aclose()
    return bytes(body)


def _check_response(response: httpx2.Response, body: bytes) -> None:
    """Raise FunctionFailed for an answer that the Functions host does not read."""
    if not 200 <= response.status_code < 300:  # noqa: PLR2004 - the statuses of success
        raise FunctionFailed(f"The custom handler answered with the status {response.status_code}.")
    if not body:
        raise FunctionFailed(
            "The custom handler's answer is empty. Write an object with Outputs, Logs and ReturnValue."
        )
    content_type = response.headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() not in _JSON_TYPES:
        raise FunctionFailed(
            f"The custom handler's answer has the content type {quoted(content_type, _MAX_SHOWN)!r}. "
            "Set Content-Type to application/json, which Azure needs."
        )


def _http_value(invocation: Invocation) -> Mapping[str, Any] | None:
    return next((value.data for value in invocation.inputs.values() if value.kind == "http"), None)


def _forwarded_request(url: str, request: Mapping[str, Any], headers: Mapping[str, str]) -> httpx2.Request:
    """Return the HTTP request of a client for the program."""
    target = httpx2.URL(request["url"]).raw_path
    fields = {name: text for name, text in request["headers"].items() if name.lower() not in _OF_THE_CONNECTION}
    content = request["body"] or None
    return httpx2.Request(
        request["method"], url, headers={**fields, **headers}, content=content, extensions={"target": target}
    )


def _response_value(response: httpx2.Response, body: bytes) -> Value:
    headers = [
        (name, text)
        for name, text in response.headers.multi_items()
        if name.lower() not in {*_OF_THE_CONNECTION, "date"}
    ]
    return Value("http", {"status": response.status_code, "headers": headers, "body": body})
