"""The commands that use a server: each connects to a target or a URL, sends its requests, and returns the results."""

from __future__ import annotations

import asyncio
import math
import os
import shlex
import time
import webbrowser
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from funcmcp._cli.arguments import read_header, read_json, read_pairs, warnings_of
from funcmcp._cli.calls import outcome_of
from funcmcp._cli.failure import Failure
from funcmcp._cli.faults import faults_of
from funcmcp._cli.json_values import as_object
from funcmcp._cli.output import write_line
from funcmcp._cli.server_log import log_lines
from funcmcp._cli.server_stderr import ServerStderr
from funcmcp._cli.terminal import ProgressDisplay, answer
from funcmcp._client.connection import Client
from funcmcp._client.errors import AuthenticationError, ConnectionFailedError, one_line
from funcmcp._client.streamable_http import MemoryTransport
from funcmcp._client.targets import MEBIBYTE, HTTPEndpoint, SignIn, StdioCommand
from funcmcp._protocol.durations import seconds_text
from funcmcp._protocol.errors import ClientError, InvalidResponseError, MCPError
from funcmcp._protocol.methods import FEATURE_LISTS, METHODS
from funcmcp._serving import serving_of
from funcmcp._visible_text import visible_url

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from funcmcp import MCPServer
    from funcmcp._cli.calls import Call
    from funcmcp._cli.faults import Fault
    from funcmcp._client.tool_tasks import ToolTask
    from funcmcp._protocol.objects import CallToolResult, Definition, GetPromptResult, ReadResourceResult, Task
    from funcmcp._transports.http.messages import Exchange

    D = TypeVar("D", bound=Definition)

_MAX_TOTAL_BYTES = 256 * MEBIBYTE
"""Bytes of all responses to one command: a server could send pages of a list until the memory is full."""

_RECONNECT_SECONDS = 60.0
"""Seconds that a command asks for a task after the connection to its server has broken."""

_RETRY_SECONDS = 0.5
_COMMAND_HOLD_SECONDS = 5.0
_SUGGESTIONS = 10
"""Names in the message about a name that does not exist."""

_UNAUTHORIZED = 401
_CLIENT_HEADERS = {"accept", "accept-encoding", "content-length", "content-type", "host", "transfer-encoding"}
_CLIENT_HEADERS |= {"mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id"}


@dataclass(frozen=True, slots=True)
class Source:
    """A server that a command uses.

    Attributes:
        target: The target, the URL or the command on the command line.
        server: The server of a target. None for a URL, a command and a function app.
        headers: Header fields of every request, such as credentials.
        verbose: Show log messages and progress as lines.
    """

    target: str
    server: MCPServer | None
    headers: dict[str, str] = field(default_factory=dict)
    verbose: bool = False
    function_app: Path | None = None
    """The folder of a function app whose MCP triggers are served for the command. None for other targets."""
    command: tuple[str, ...] = ()
    """The program and its arguments that serve on stdio. Empty for other targets."""
    sign_in: SignIn | None = None
    """How the user signs in at a URL. None: the user does not sign in."""

    @property
    def name(self) -> str:
        """The target or the URL for messages."""
        return visible_url(self.target)


def open_source(
    target: str,
    *,
    headers: Sequence[str] = (),
    bearer: str | None = None,
    sign_in: bool = False,
    verbose: bool = False,
) -> Source:
    """Return the server of a target, a URL or a command. A target is imported here, outside of any event loop.

    Args:
        target: A target, a URL, or a command with a space in it, such as ``python server.py``.
        headers: Header fields as ``NAME:VALUE``.
        bearer: A token for ``Authorization: Bearer``.
        sign_in: Whether the user of a URL signs in with a browser.
        verbose: Show log messages and progress as lines.

    Raises:
        Failure: A header field is not valid, or the server does not exist.
    """
    fields = dict(map(_header, headers))
    if bearer is not None:
        fields |= [_header(f"authorization:Bearer {bearer}")]
    if target.startswith(("http://", "https://")):
        if sign_in and "authorization" in fields:
            raise Failure("--sign-in and a token can't be combined: unset FUNCMCP_BEARER, or leave out --sign-in.")
        how = SignIn(open_browser=_open_browser, file=_sign_in_file()) if sign_in else None
        return Source(target, None, fields, verbose, sign_in=how)
    if sign_in:
        raise Failure("--sign-in is for URLs. A server of this machine asks for no sign-in.")
    if is_command(target):
        if fields:
            raise Failure("--header and --bearer are for URLs. A command gets the environment variables of this shell.")
        return Source(target, None, verbose=verbose, command=tuple(shlex.split(target)))
    from funcmcp._cli.targets import function_app_in, load  # noqa: PLC0415 - a URL does not need it

    folder = function_app_in(target)
    if folder is not None:
        return Source(target, None, fields, verbose, function_app=folder)
    return Source(target, load(target), fields, verbose)


def is_command(target: str) -> bool:
    """Return whether a target is a command, such as ``uvx mcp-server-time``, and not a path with a space in it."""
    try:
        return len(shlex.split(target)) > 1 and not os.path.exists(target.rpartition(":")[0] or target)  # noqa: PTH110
    except ValueError as error:
        raise Failure(f"{target} is not a command: {error}.") from error


async def _open_browser(address: str) -> None:
    """Show where to sign in, for a machine without a browser, and open it."""
    write_line(f"Sign in with your browser: {address}", error=True)
    await asyncio.to_thread(webbrowser.open, address)


def _sign_in_file() -> Path:
    """Return the file that has the tokens of this user."""
    folder = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME")
    return Path(folder or Path.home() / ".local" / "state") / "funcmcp" / "sign-ins.json"


def _header(text: str) -> tuple[str, str]:
    """Return a header field's name in lower case and its value. No message repeats the value, which may be secret."""
    name, value = read_header(text, example="X-Api-Key: secret")
    name = name.lower()
    if name in _CLIENT_HEADERS:
        raise Failure(f"--header {name} is not possible: the client sets this field itself.")
    return name, value


async def inspect_server(source: Source, calls: Sequence[Call] = ()) -> tuple[dict[str, Any], list[Fault]]:
    """Return a server's description and lists, and the features of a target that cannot be listed.

    The description has the keys ``server``, ``revision``, ``capabilities`` and ``instructions``. The lists have the
    keys ``tools``, ``resources``, ``resourceTemplates`` and ``prompts``. Every item is as the server sends it. With
    calls there is a key ``calls``, with the result or the error of each.
    """
    async with _connected(source, None) as (client, faults):
        facts = {
            "server": client.server_info,
            "revision": client.revision,
            "capabilities": client.capabilities,
            "instructions": client.instructions,
            **{member: await _items(client, method, member) for method, member in FEATURE_LISTS.items()},
        }
        if calls:
            facts["calls"] = [{**call, **await outcome_of(client, call)} for call in calls]
        return facts, faults


async def _items(client: Client, method: str, member: str) -> list[Any]:
    """Return the items of a list. Return none if the server does not have the capability."""
    if METHODS[method].capability not in client.capabilities:
        return []
    return await client.list_items(method, member)


async def read_resource(source: Source, uri: str) -> ReadResourceResult:
    """Read a resource and return the result. Raise Failure if that is not possible."""
    with ProgressDisplay(verbose=source.verbose) as display:
        async with _connected(source, display) as (client, faults):
            if "resources" not in client.capabilities:
                raise Failure(f"{client.server_info.get('name')} has no resources.")
            _reject_faulty(faults, "resource", uri)
            return await client.read_resource(uri)


async def get_prompt(source: Source, name: str, pairs: Sequence[str]) -> GetPromptResult:
    """Get a prompt and return the result.

    Args:
        source: The server.
        name: The prompt's name.
        pairs: Arguments as ``key=value``. All of them are strings.

    Raises:
        Failure: The prompt does not exist, or the server rejects its arguments.
    """
    properties = {pair.partition("=")[0]: {"type": "string"} for pair in pairs}
    with ProgressDisplay(verbose=source.verbose) as display:
        async with _connected(source, display) as (client, faults):
            _reject_faulty(faults, "prompt", name)
            prompts = await client.list_prompts() if "prompts" in client.capabilities else []
            _named("prompt", prompts, name)
            return await client.get_prompt(name, read_pairs(pairs, {"properties": properties}))


async def call_tool(
    source: Source, name: str, pairs: Sequence[str], text: str | None, display: ProgressDisplay
) -> CallToolResult:
    """Call a tool and return its result.

    Args:
        source: The server.
        name: The tool's name.
        display: Shows the progress of the call, or its task.
        pairs: Arguments as ``key=value``.
        text: All arguments as a JSON object, or as ``@FILE``. None if there are pairs.

    Raises:
        Failure: The tool does not exist, or the arguments cannot be read.
    """
    if pairs and text is not None:
        raise Failure("Pass the arguments either as key=value or with --input-json, not both.")
    json_arguments = None if text is None else read_json(text)
    with display:
        async with _connected(source, display) as (client, faults):
            _reject_faulty(faults, "tool", name)
            tool = _named("tool", await client.list_tools(), name)
            if json_arguments is None:
                arguments = read_pairs(pairs, tool.input_schema)
            else:
                arguments = json_arguments
            for warning in warnings_of(arguments, tool.input_schema):
                write_line(warning, error=True)
            return await _result_of(source, await client.start_tool(name, arguments))


async def _result_of(source: Source, task: ToolTask) -> CallToolResult:
    """Return the result of a call. While a task runs, connections may break: the server may be starting again.

    Raises:
        Failure: The server has not answered for too long. The task is not cancelled.
    """
    lost_since = 0.0
    last_state: Task | None = None
    while True:
        try:
            return await task.result()
        except ConnectionFailedError as error:
            if task.task_id is None or source.command:
                raise
            now = time.monotonic()
            if task.state is not last_state:
                lost_since, last_state = now, task.state
                text = f"The connection to {source.name} is lost. Asking for the task {task.task_id} for"
                write_line(f"{text} {seconds_text(_RECONNECT_SECONDS)}.", error=True)
            if now - lost_since > _RECONNECT_SECONDS:
                raise Failure(f"{one_line(error, 2000)} The task {task.task_id} may still run.") from error
            await asyncio.sleep(_RETRY_SECONDS)
        except BaseException:
            await task.cancel_quietly()
            raise


def _reject_faulty(faults: list[Fault], kind: str, key: str) -> None:
    for fault in faults:
        if (fault.kind, fault.key) == (kind, key):
            raise Failure(f"The {kind} {key} cannot be used. Correct it: {fault.reason}")


def _named(kind: str, features: list[D], name: str) -> D:
    """Return the feature with a name. Raise Failure with similar names if it does not exist."""
    for feature in features:
        if feature.get("name") == name:
            return feature
    names = [str(feature.get("name")) for feature in features]
    similar = get_close_matches(name, names, 3)
    if similar:
        raise Failure(f"The server has no {kind} {name!r}. Did you mean {' or '.join(similar)}?")
    if not names:
        raise Failure(f"The server has no {kind} {name!r}. It has no {kind}s.")
    listed = ", ".join(names[:_SUGGESTIONS])
    if len(names) > _SUGGESTIONS:
        listed += f" and {len(names) - _SUGGESTIONS} more"
    raise Failure(f"The server has no {kind} {name!r}. It has {listed}.")


@asynccontextmanager
async def _connected(source: Source, display: ProgressDisplay | None) -> AsyncIterator[tuple[Client, list[Fault]]]:
    """Connect to a server. Yield the client, and the features of a target that cannot be listed.

    Raises:
        Failure: The server cannot be reached, does not answer as an MCP server, or rejects a request.
    """
    faults: list[Fault] = []
    async with AsyncExitStack() as stack:
        stderr = stack.enter_context(ServerStderr(_hold_seconds(source))) if source.command else None
        if source.command == ():
            stack.enter_context(log_lines(verbose=source.verbose))
        if source.function_app is not None:
            from funcmcp._cli.function_app import serving_function_app  # noqa: PLC0415 - few targets are function apps

            shows_left_out = display is None or source.verbose  # inspect shows all of an app
            served = serving_function_app(source.function_app, shows_left_out=shows_left_out)
            exchange = await stack.enter_async_context(served)
            client = _client_of(exchange, source, display)
        else:
            client = _client(source, display, stderr)
        async with _reporting(source), AsyncExitStack() as connection:
            if source.server is not None:
                faults = [fault async for fault in faults_of(source.server)]
            try:
                await connection.enter_async_context(client)
            except ConnectionFailedError as error:
                if stderr is None:
                    raise
                raise Failure(_end_of(source, error, stderr)) from error
            if stderr is not None:
                stderr.release()
            yield client, faults


def _hold_seconds(source: Source) -> float:
    """Return how long to hold what a server writes on stderr: ``uvx`` and others show their progress there."""
    return _COMMAND_HOLD_SECONDS if is_command(source.target) else math.inf


def _end_of(source: Source, error: ConnectionFailedError, stderr: ServerStderr) -> str:
    """Return one line about a process that has ended before it answered."""
    cause = stderr.cause()
    if not cause:
        return one_line(error, 2000)
    if is_command(source.target):
        return f"{one_line(error, 2000)} {one_line(cause, 2000)}"
    return one_line(cause, 2000)  # a target, whose process names the line of the author's code


@asynccontextmanager
async def _reporting(source: Source) -> AsyncIterator[None]:
    """Turn the errors of a client into a Failure, and close the server of a target."""
    try:
        yield
    except MCPError as error:
        raise Failure(f"The server answered with error {error.code}: {one_line(error, 2000)}{_id_of(error)}") from error
    except AuthenticationError as error:
        raise Failure(_advice(source, error)) from error
    except InvalidResponseError as error:
        raise Failure(f"{source.name} does not answer as an MCP server. {one_line(error, 2000)}") from error
    except ClientError as error:
        raise Failure(one_line(error, 2000)) from error
    finally:
        if source.server is not None:
            await serving_of(source.server).aclose()


def _id_of(error: MCPError) -> str:
    """Return the id of an error in the server's log, in parentheses. Empty if the server sent none."""
    error_id = as_object(error.data).get("errorId")
    return "" if error_id is None or str(error_id) in str(error) else f" (error id {one_line(error_id)})"


def _client(source: Source, display: ProgressDisplay | None, stderr: ServerStderr | None) -> Client:
    """Return a client of a server, not connected yet. It asks for what is displayed."""
    if stderr is not None:
        command = StdioCommand(*source.command, env=os.environ, stderr=stderr.descriptor)
        return _client_of(command, source, display)
    if source.server is None:
        endpoint = HTTPEndpoint(source.target, max_total_bytes=_MAX_TOTAL_BYTES, sign_in=source.sign_in)
        return _client_of(endpoint, source, display)
    if source.headers:
        return _client_of(source.server, source, display)
    return _client_of(MemoryTransport(serving_of(source.server), {}, by_user=True), source, display)


def _client_of(
    target: MCPServer | HTTPEndpoint | StdioCommand | Exchange | MemoryTransport,
    source: Source,
    display: ProgressDisplay | None,
) -> Client:
    try:
        return Client(
            target,
            elicit=answer if display is None else display.answer,
            on_task=None if display is None else display.show_task,
            on_progress=display.show_progress if display is not None and display.shows_progress else None,
            on_log=display.show_log if display is not None and source.verbose else None,
            log_level="debug" if display is not None and source.verbose else None,
            headers=source.headers,
        )
    except ValueError as error:
        raise Failure(str(error)) from error


def _advice(source: Source, error: AuthenticationError) -> str:
    if error.status == _UNAUTHORIZED:
        ways = "Pass valid ones with --bearer TOKEN or --header NAME:VALUE"
        if "resource_metadata=" in (error.challenge or ""):
            ways += ", or sign in with --sign-in"
        return f"{source.name} requires credentials (401). {ways}."
    return f"{source.name} denies access with these credentials (403): {one_line(error.challenge)}"
