"""The commands that use a server: each connects to a target or a URL, sends its requests, and returns the results."""

from __future__ import annotations

import asyncio
import math
import os
import re
import shlex
import time
import webbrowser
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from funcmcp import MCPError, RegistrationError
from funcmcp._authoring.calling.lifespans import CannotStartError
from funcmcp._client.errors import one_line
from funcmcp._client.streamable_http import MemoryTransport
from funcmcp._protocol.durations import seconds_text
from funcmcp._protocol.methods import FEATURE_LISTS, METHODS, repeating_headers
from funcmcp._protocol.objects import Tool
from funcmcp._serving.composition import runtime_of
from funcmcp._text.listing import some_of
from funcmcp._text.visible import visible_line, visible_url
from funcmcp.client import (
    AuthenticationError,
    Client,
    ClientError,
    ConnectionFailedError,
    HTTPEndpoint,
    InvalidResponseError,
    KeyringFile,
    SignIn,
    StdioCommand,
)
from funcmcp_cli.arguments import read_header, read_json, read_pairs, warnings_of
from funcmcp_cli.calls import outcome_of
from funcmcp_cli.failure import Failure
from funcmcp_cli.faults import faults_of
from funcmcp_cli.home_folder import home_folder
from funcmcp_cli.json_values import as_object
from funcmcp_cli.other_targets import advice_about_file
from funcmcp_cli.output import write_line
from funcmcp_cli.server_log import log_lines
from funcmcp_cli.server_stderr import ServerStderr
from funcmcp_cli.terminal import ProgressDisplay, answer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from funcmcp import MCPServer
    from funcmcp._protocol.objects import Definition
    from funcmcp._server.calls.feature import Feature
    from funcmcp._transports.http.messages import Exchange
    from funcmcp._upstreams.definitions import UpstreamLists
    from funcmcp._upstreams.features import ServerFacts
    from funcmcp.client import (
        CallToolResult,
        ClientCredentials,
        GetPromptResult,
        ReadResourceResult,
        Task,
        ToolTask,
        WorkloadIdentity,
    )
    from funcmcp_cli.calls import Call
    from funcmcp_cli.faults import Fault

    D = TypeVar("D", bound=Definition)

_MAX_TOTAL_BYTES = 256 * 1024 * 1024
"""Bytes of all responses to one command: a server could send pages of a list until the memory is full."""

_RECONNECT_SECONDS = 60.0
"""Seconds that a command asks for a task after the connection to its server has broken."""

_RETRY_SECONDS = 0.5
_ENDPOINTS = ("/mcp", "/runtime/webhooks/mcp")
"""The paths of endpoints: of most servers, and of Azure's MCP triggers."""

_COMMAND_HOLD_SECONDS = 5.0
_SUGGESTIONS = 10
"""Names in the message about a name that does not exist."""

_UNAUTHORIZED = 401
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_CLIENT_HEADERS = {"accept", "accept-encoding", "content-length", "content-type", "host", "transfer-encoding"}
_CLIENT_HEADERS |= {"mcp-method", "mcp-protocol-version", "mcp-session-id", *repeating_headers()}


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
    folder: Path | None = None
    """The folder in which the command starts. None for that of this process."""
    variables: dict[str, str] = field(default_factory=dict)
    """Environment variables of the command, beside those of this process."""
    sign_in: SignIn | ClientCredentials | WorkloadIdentity | None = None
    """How the user, or the command as a program, signs in at a URL. None: nobody signs in."""
    revision: str | None = None
    """The revision of MCP to speak. None: the newest that the server answers with in time."""

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
    program: ClientCredentials | WorkloadIdentity | None = None,
    verbose: bool = False,
) -> Source:
    """Return the server of a target, a URL or a command. A target is imported here, outside of any event loop.

    Args:
        target: A target, a URL, or a command with a space in it, such as ``python server.py``.
        headers: Header fields as ``NAME:VALUE``. ``${NAME}`` in a value is an environment variable.
        bearer: A token for ``Authorization: Bearer``.
        sign_in: Whether the user of a URL signs in with a browser.
        program: How the command signs in at a URL as a program; None if it does not.
        verbose: Show log messages and progress as lines.

    Raises:
        Failure: A header field is not valid, or the server does not exist.
    """
    fields = dict(_header(_with_variables(text)) for text in headers)
    if bearer is not None:
        fields |= [_header(f"authorization:Bearer {bearer}")]
    if target.startswith(("http://", "https://")):
        return Source(target, None, fields, verbose, sign_in=_sign_in(fields, program, sign_in=sign_in))
    if is_servers_file(target):
        return Source(target, _server_of_file(target, fields, program, sign_in=sign_in), verbose=verbose)
    if sign_in or program is not None:
        option = "--sign-in" if sign_in else "--client-credentials"
        raise Failure(f"{option} is for URLs only. A server on this machine needs no sign-in.")
    if is_command(target):
        if fields:
            raise Failure(
                "--header and --bearer are for URLs only. A command gets the environment variables of this shell."
            )
        return Source(target, None, verbose=verbose, command=tuple(shlex.split(target)))
    from funcmcp_cli.targets import function_app_in, load  # noqa: PLC0415 - a URL does not need it

    folder = function_app_in(target)
    if folder is not None:
        return Source(target, None, fields, verbose, function_app=folder)
    return Source(target, load(target), fields, verbose)


def _server_of_file(
    target: str, fields: Mapping[str, str], program: ClientCredentials | WorkloadIdentity | None, *, sign_in: bool
) -> MCPServer:
    """Return a server with the features of the servers in a client's configuration file."""
    from funcmcp_cli.servers_in_file import ServersInFile  # noqa: PLC0415 - few targets are such files

    if fields or program is not None:
        raise Failure("--header, --bearer and --client-credentials are for one URL. Write headers into the file.")
    return ServersInFile(Path(target), user_sign_in() if sign_in else None).load()


def is_servers_file(target: str) -> bool:
    """Return whether a target is the configuration file of an MCP client."""
    file = Path(target)
    if file.suffix not in (".json", ".toml") or file.name == "host.json" or not file.is_file():
        return False
    return not advice_about_file(file, target)


def user_sign_in() -> SignIn:
    """Return how the user of this machine signs in."""
    return SignIn(open_browser=_open_browser, file=KeyringFile(_sign_in_file()))


def _sign_in(
    fields: Mapping[str, str], program: ClientCredentials | WorkloadIdentity | None, *, sign_in: bool
) -> SignIn | ClientCredentials | WorkloadIdentity | None:
    """Return how a URL gets tokens; raise Failure if several options say so."""
    option = "--sign-in" if sign_in else "--client-credentials"
    if (sign_in or program is not None) and "authorization" in fields:
        raise Failure(f"{option} and a token can't be combined: unset FUNCMCP_BEARER, or leave out {option}.")
    if sign_in and program is not None:
        raise Failure("--sign-in and --client-credentials can't be combined: a user signs in, or the program does.")
    return user_sign_in() if sign_in else program


def is_command(target: str) -> bool:
    """Return whether a target is a command, such as ``uvx mcp-server-time``, and not a path with a space in it."""
    try:
        return len(shlex.split(target)) > 1 and not os.path.exists(target.rpartition(":")[0] or target)  # noqa: PTH110
    except ValueError as error:
        raise Failure(f"{target} is not a command: {error}.") from error


def client_target(source: Source) -> HTTPEndpoint | StdioCommand:
    """Return the URL or the command of a source for programs that run for long, without a limit for all responses."""
    if source.command:
        return StdioCommand(*source.command, env=os.environ)
    return HTTPEndpoint(source.target, source.headers, sign_in=source.sign_in)


async def _open_browser(address: str) -> None:
    """Show where to sign in, for a machine without a browser, and open it."""
    write_line(f"Sign in with your browser: {address}", error=True)
    await asyncio.to_thread(webbrowser.open, address)


def _sign_in_file() -> Path:
    """Return the file that has the tokens of this user."""
    folder = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME")
    return Path(folder or home_folder() / ".local" / "state") / "funcmcp" / "sign-ins.json"


def _with_variables(header: str) -> str:
    """Return a header field with the values of its environment variables; raise Failure if one is not set.

    The files of MCP clients have secrets in ``env``, and no shell that replaces ``${NAME}`` in ``args``.
    """

    def value_of(match: re.Match[str]) -> str:
        value = os.environ.get(match[1])
        if value is None:
            raise Failure(f"--header refers to the environment variable {match[1]}, which is not set.")
        return value

    return _VARIABLE.sub(value_of, header)


def _header(text: str) -> tuple[str, str]:
    """Return a header field's name in lower case and its value. No message repeats the value, which may be secret."""
    name, value = read_header(text, example="X-Api-Key: secret")
    name = name.lower()
    if name in _CLIENT_HEADERS:
        raise Failure(f"--header {name} is not possible: the client sets this field itself.")
    return name, value


async def inspect_server(
    source: Source, calls: Sequence[Call] = (), *, call_seconds: float | None = None
) -> tuple[dict[str, Any], list[Fault]]:
    """Return a server's description and lists, and the features of a target that cannot be listed.

    The description has the keys ``server``, ``revision``, ``capabilities`` and ``instructions``. The lists have the
    keys ``tools``, ``resources``, ``resourceTemplates`` and ``prompts``. Every item is as the server sends it. With
    calls there is a key ``calls``, with the result or the error of each. The key ``sources`` has, for each list, the
    features of a target that come from mounted servers and from servers elsewhere, and where they come from. The key
    ``withoutStructure`` has the tools of a function app with an output schema whose results never have structured
    content.

    Args:
        source: The server.
        calls: The calls to make.
        call_seconds: The time limit of each call. A call without an answer has an error instead. None: no limit.
    """
    async with _connected(source, None) as (client, faults, without_structure):
        facts = {
            "server": client.server_info,
            "revision": client.revision,
            "capabilities": client.capabilities,
            "instructions": client.instructions,
            **{member: await _items(client, method, member) for method, member in FEATURE_LISTS.items()},
        }
        sources = {} if source.server is None else _sources_in(source.server)
        if sources:
            facts["sources"] = sources
        if without_structure:
            facts["withoutStructure"] = list(without_structure)
        if calls:
            facts["calls"] = [{**call, **await outcome_of(client, call, call_seconds)} for call in calls]
        return facts, faults


def _sources_in(server: MCPServer) -> dict[str, dict[str, str]]:
    """Return where features that are not a server's own come from: by the name of the list, and the name or URI."""
    sources: dict[str, dict[str, str]] = {}
    for features in runtime_of(server).server.routes.lists.values():
        for feature in features.registry:
            text = _source_of(feature)
            if text:
                sources.setdefault(features.name, {})[feature.key] = text
    return sources


def _source_of(feature: Feature) -> str:
    """Return where a feature comes from: the mounted servers and the server elsewhere; "" for the server itself."""
    steps = [f"mounted {name}" for name in feature.mounted]
    if feature.upstream is not None:
        steps.append(f"upstream {feature.upstream.upstream.name}")
    return ", ".join(steps)


async def definitions_of(source: Source) -> tuple[ServerFacts, UpstreamLists]:
    """Return what a server says about itself, and its valid definitions for clients with and without capabilities.

    Raises:
        Failure: The server cannot be reached, does not answer as an MCP server, or rejects a request.
    """
    from funcmcp.upstreams import Upstream  # noqa: PLC0415 - only for this

    if source.function_app is not None:
        raise Failure("A function app can't be pinned as a folder. Start it with funcmcp host, and pin its URL.")
    if source.server is None:
        upstream = Upstream(client_target(source), name=source.name)
    else:
        upstream = Upstream(MemoryTransport(runtime_of(source.server), {}, by_user=True), name=source.name)
    async with _reporting(source):
        try:
            return await upstream.definitions()
        finally:
            await upstream.aclose()


_METHOD_NOT_FOUND = -32601
_RESOURCE_NOT_FOUND = {-32002, -32602}  # before 2026-07-28, and since


async def _items(client: Client, method: str, member: str) -> list[Any]:
    """Return the items of a list. Return none if the server does not have the capability, or the list."""
    if METHODS[method].capability not in client.capabilities:
        return []
    try:
        return await client.list_items(method, member)
    except MCPError as error:
        if error.code != _METHOD_NOT_FOUND:
            raise
        return []  # many servers with resources do not have resources/templates/list


async def read_resource(source: Source, uri: str) -> ReadResourceResult:
    """Read a resource and return the result. Raise Failure if that is not possible."""
    with ProgressDisplay(verbose=source.verbose) as display:
        async with _connected(source, display) as (client, faults, _):
            if "resources" not in client.capabilities:
                raise Failure(f"{visible_line(str(client.server_info.get('name')))} has no resources.")
            _reject_faulty(faults, "resource", uri)
            try:
                return await client.read_resource(uri)
            except MCPError as error:
                if error.code not in _RESOURCE_NOT_FOUND:
                    raise
                similar = await _similar_resources(client, uri)
                if not similar:
                    raise
                if ":" not in uri:
                    raise Failure(f"{uri!r} is not a URI. Did you mean {' or '.join(similar)}?") from error
                text = f"The server answered with error {error.code}: {one_line(error, 2000)}"
                raise Failure(f"{text.removesuffix('.')}. Did you mean {' or '.join(similar)}?") from error


async def _similar_resources(client: Client, uri: str) -> list[str]:
    """Return the URIs and the templates of a server that are like a URI."""
    resources = await _items(client, "resources/list", "resources")
    templates = await _items(client, "resources/templates/list", "resourceTemplates")
    uris = [str(item.get("uri")) for item in resources] + [str(item.get("uriTemplate")) for item in templates]
    if ":" not in uri:
        return [candidate for candidate in uris if candidate.partition("://")[2].startswith(uri)][:3]
    return get_close_matches(uri, uris, 3)


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
        async with _connected(source, display) as (client, faults, _):
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
        async with _connected(source, display) as (client, faults, _):
            _reject_faulty(faults, "tool", name)
            tools = await client.list_tools()
            if all(tool.get("name") != name for tool in tools):
                tools = [*tools, *unlisted_tools(source, tools)]
            tool = _named("tool", tools, name)
            if json_arguments is None:
                arguments = read_pairs(pairs, tool.input_schema)
            else:
                arguments = json_arguments
            result = await _result_of(source, await client.start_tool(name, arguments))
            if not result.get("isError"):  # the error names the argument
                for warning in warnings_of(arguments, tool.input_schema):
                    write_line(warning, error=True)
            return result


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
            raise Failure(f"The {kind} {key} cannot be used. {fault.reason}")


def unlisted_tools(source: Source, listed: Sequence[Mapping[str, Any]]) -> list[Tool]:
    """Return the tools of a server of this process that its list leaves out, because it has a search for them."""
    if source.server is None:
        return []
    names = {tool.get("name") for tool in listed}
    tools = []
    for tool in runtime_of(source.server).server.catalog.tools:
        if tool.name not in names:
            with suppress(RegistrationError):  # it is one of the faults
                tools.append(Tool(tool.describe()))
    return tools


def _named(kind: str, features: list[D], name: str) -> D:
    """Return the feature with a name. Raise Failure with similar names if it does not exist."""
    for feature in features:
        if feature.get("name") == name:
            return feature
    names = [str(feature.get("name")) for feature in features]
    similar = [visible_line(match) for match in get_close_matches(name, names, 3)]
    if similar:
        raise Failure(f"The server has no {kind} {name!r}. Did you mean {' or '.join(similar)}?")
    if not names:
        raise Failure(f"The server has no {kind} {name!r}. It has no {kind}s.")
    shown = some_of(list(map(visible_line, names)), _SUGGESTIONS)
    raise Failure(f"The server has no {kind} {name!r}. It has {shown}.")


@asynccontextmanager
async def connected(source: Source) -> AsyncIterator[Client]:
    """Connect to a server, with a display of its progress; raise Failure as `_connected`."""
    with ProgressDisplay(verbose=source.verbose) as display:
        async with _connected(source, display) as connection:
            yield connection.client


class _Connection(NamedTuple):
    """A connection to a server.

    Attributes:
        client: The client.
        faults: The features of a target that cannot be listed.
        without_structure: The tools of a function app with an output schema whose results never have structured
            content.
    """

    client: Client
    faults: list[Fault]
    without_structure: Sequence[str] = ()


@asynccontextmanager
async def _connected(source: Source, display: ProgressDisplay | None) -> AsyncIterator[_Connection]:
    """Connect to a server.

    Raises:
        Failure: The server cannot be reached, does not answer as an MCP server, or rejects a request.
    """
    faults: list[Fault] = []
    without_structure: Sequence[str] = ()
    async with AsyncExitStack() as stack:
        stderr = stack.enter_context(ServerStderr(_hold_seconds(source))) if source.command else None
        if source.command == ():
            stack.enter_context(log_lines(verbose=source.verbose))
        if source.function_app is not None:
            from funcmcp_cli.function_app import serving_function_app  # noqa: PLC0415 - few targets are function apps

            shows_left_out = display is None or source.verbose  # inspect shows all of an app
            served = serving_function_app(source.function_app, shows_left_out=shows_left_out)
            exchange, without_structure = await stack.enter_async_context(served)
            client = _client_of(exchange, source, display)
        else:
            client = _client(source, display, stderr)
        async with _reporting(source), AsyncExitStack() as connection:
            if source.server is not None:
                faults = [fault async for fault in faults_of(source.server)]
            try:
                client = await _opened(client, source, display, connection)
            except ConnectionFailedError as error:
                if stderr is None:
                    raise
                raise Failure(_end_of(source, error, stderr)) from error
            if stderr is not None:
                stderr.release()
            yield _Connection(client, faults, without_structure)


async def _opened(
    client: Client, source: Source, display: ProgressDisplay | None, connection: AsyncExitStack
) -> Client:
    """Return the connected client. A URL without a path is tried with those where most servers listen as well."""
    try:
        return await connection.enter_async_context(client)
    except (MCPError, InvalidResponseError) as error:
        url = urlsplit(source.target)
        if not url.netloc or url.path.strip("/"):
            raise
        for path in _ENDPOINTS:
            endpoint = replace(source, target=url._replace(path=path).geturl())
            try:
                client = await connection.enter_async_context(_client(endpoint, display, None))
            except (MCPError, ClientError):
                continue
            write_line(f"The endpoint is {endpoint.name}.", error=True)
            return client
        raise error from None


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
    except (ClientError, CannotStartError) as error:
        raise Failure(one_line(error, 2000)) from error
    finally:
        if source.server is not None:
            await runtime_of(source.server).aclose()


def _id_of(error: MCPError) -> str:
    """Return the id of an error in the server's log, in parentheses. Empty if the server sent none."""
    error_id = as_object(error.data).get("errorId")
    return "" if error_id is None or str(error_id) in str(error) else f" (error id {one_line(error_id)})"


def _client(source: Source, display: ProgressDisplay | None, stderr: ServerStderr | None) -> Client:
    """Return a client of a server, not connected yet. It asks for what is displayed."""
    if stderr is not None:
        variables = {**os.environ, **source.variables}
        command = StdioCommand(*source.command, env=variables, cwd=source.folder, stderr=stderr.descriptor)
        return _client_of(command, source, display)
    if source.server is None:
        endpoint = HTTPEndpoint(source.target, max_total_bytes=_MAX_TOTAL_BYTES, sign_in=source.sign_in)
        return _client_of(endpoint, source, display)
    if source.headers:
        return _client_of(source.server, source, display)
    return _client_of(MemoryTransport(runtime_of(source.server), {}, by_user=True), source, display)


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
            revision=source.revision,
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
