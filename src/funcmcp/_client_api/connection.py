"""An MCP client: typed methods for the requests of a client, and the callbacks for what the server sends.

How it works: `requests.py` agrees on a revision with the server and sends single requests. `_in_rounds` repeats a
request with answers while the server asks for input (2026-07-28). `tool_tasks.py` follows calls that become tasks, and
`subscriptions.py` what changes at the server.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import asynccontextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, TypeVar

from funcmcp._client.answers import Answers, checked_roots, declared_extensions
from funcmcp._client.list_cache import ListCache
from funcmcp._client.messages import member_of
from funcmcp._client.notifications import log_message_of, progress_of
from funcmcp._client.requests import Requests
from funcmcp._client.skills import (
    SkillError,
    has_skills,
    lists_folders,
    skill_of,
    skills_of,
    uri_of_file,
    verified_file,
)
from funcmcp._client.subscriptions import Changes, Listener, Subscriptions
from funcmcp._client.target_transports import transport_for
from funcmcp._client.tool_tasks import TaskClient, ToolTask
from funcmcp._objects.public_names import public
from funcmcp._protocol.completion import completion_of
from funcmcp._protocol.errors import ClientError, InvalidResponseError, MCPError
from funcmcp._protocol.levels import LEVELS
from funcmcp._protocol.methods import FEATURE_LISTS
from funcmcp._protocol.objects import (
    CallToolResult,
    GetPromptResult,
    Prompt,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    Tool,
    objects_of,
)
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.run import require_asyncio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from pydantic import AnyUrl

    from funcmcp._client.answers import Callback
    from funcmcp._client.notifications import Change, LogMessage, ProgressUpdate
    from funcmcp._client.skills import Skill, SkillFile
    from funcmcp._client.target_transports import Target
    from funcmcp._client.transport import Transport
    from funcmcp._protocol.completion import Completion
    from funcmcp._protocol.objects import Task, WireObject
    from funcmcp._upstreams.status import UpstreamStatus

    R = TypeVar("R", bound=WireObject)
    D = TypeVar("D", bound=WireObject)
    OnProgress: TypeAlias = Callable[[ProgressUpdate], None]

_MAX_ROUNDS = 20
_RESULT_TYPES = {
    "tools/call": ("input_required", "task"),
    "resources/read": ("input_required",),
    "prompts/get": ("input_required",),
}
"""The types of results that a method may have in addition to "complete"."""


class _MessageCallbacks(NamedTuple):
    """The callbacks of a client for what the server sends during requests."""

    on_notification: Callable[[dict[str, Any]], None] | None
    on_progress: OnProgress | None
    on_log: Callable[[LogMessage], None] | None
    on_task: Callable[[Task], None] | None


class _ChangeCallbacks(NamedTuple):
    """The callbacks of a client for changes at the server."""

    on_tool_list_changed: Callable[[], None] | None
    on_prompt_list_changed: Callable[[], None] | None
    on_resource_list_changed: Callable[[], None] | None
    on_resource_updated: Callable[[str], None] | None

    @property
    def of_lists(self) -> dict[str, Callable[[], None] | None]:
        """The callbacks for changes of lists, by the kind of list."""
        return {
            "tools": self.on_tool_list_changed,
            "prompts": self.on_prompt_list_changed,
            "resources": self.on_resource_list_changed,
        }

    @property
    def kinds(self) -> list[str]:
        """The kinds of lists whose changes have a callback."""
        return [kind for kind, callback in self.of_lists.items() if callback is not None]


@public("funcmcp.client")
class Client:
    """A client of one server.

    Entering the ``async with`` block connects to the server. Leaving it ends the session and the connection. Requests
    may run concurrently. The callbacks ``on_...`` are called in the event loop and must not block it.

    Example:
        ```python
        async with Client(mcp, revision="2026-07-28") as client:
            result = await client.call_tool("add", {"a": 1, "b": 2})
        ```

    Args:
        target: The server: an MCPServer, which the client calls in memory; the URL of a Streamable HTTP endpoint, or an
            HTTPEndpoint; a StdioCommand; an async function from HttpRequest to HttpResponse; or your own Transport. Or
            several servers: a dict with ``mcpServers`` as in the configuration files of MCP clients, or the path of
            such a file. The names of each of several servers have the name of its entry as their prefix.
        revision: The protocol revision to use. By default the newest one that the server supports.
        elicit: Answers ``elicitation/create``: receives its params and returns an ElicitResult such as
            ``{"action": "accept", "content": {...}}``. The client declares the capability only if this is set. An
            MCPError of the callback is sent to the server. Any other exception also fails the request under way.
        sample: Answers ``sampling/createMessage`` in the same way.
        roots: Root objects such as ``{"uri": "file:///data"}``, which the client returns for ``roots/list``.
        on_notification: Receives every notification of the server, as a JSON-RPC message.
        on_progress: Receives the progress of each call without its own `on_progress` argument. The client asks for
            progress only if one of the two is set.
        on_log: Receives every log message of the server.
        on_task: Receives each new state of a task that the client follows.
        on_tool_list_changed: Is called when the server's list of tools has changed. The client then asks the server to
            report it, as for the next two.
        on_prompt_list_changed: Is called when the list of prompts has changed.
        on_resource_list_changed: Is called when the list of resources or of templates has changed.
        on_resource_updated: Receives the URI of a resource whose contents have changed, after `subscribe`.
        log_level: The least severe log messages to ask for: debug, info, notice, warning, error, critical, alert or
            emergency. By default info if `on_log` is set; otherwise the client does not ask for any.
        headers: Header fields of every HTTP request, such as ``{"authorization": "Bearer ..."}``.
        timeout: Seconds that each request may take, including the time to answer questions, and those that connect.
            None: no limit.
        reset_on_progress: Whether progress of a request begins its seconds of *timeout* again. The client then asks for
            progress without `on_progress`, too.
        extensions: The extensions of the protocol that the client declares: their settings by name, or their names.
            Servers have methods for clients with an extension; `request` sends them.
        cache: Whether lists are cached for as long as a server of 2026-07-28 allows. A server in memory is asked each
            time.

    Raises:
        ValueError: The revision, the log level, an extension or the URL is invalid; *headers* is set for a StdioCommand
            or for several servers; or a configuration can't be read or has no server that can be used.
        TypeError: The target, *roots*, *timeout* or *extensions* has another type, or a callback ``on_...`` is an
            async function.
    """

    def __init__(  # noqa: PLR0913 - keyword-only options, most calls use none or one
        self,
        target: Target | Mapping[str, Any] | PathLike[str],
        *,
        revision: str | None = None,
        elicit: Callback | None = None,
        sample: Callback | None = None,
        roots: Sequence[dict[str, Any]] | None = None,
        on_notification: Callable[[dict[str, Any]], None] | None = None,
        on_progress: OnProgress | None = None,
        on_log: Callable[[LogMessage], None] | None = None,
        on_task: Callable[[Task], None] | None = None,
        on_tool_list_changed: Callable[[], None] | None = None,
        on_prompt_list_changed: Callable[[], None] | None = None,
        on_resource_list_changed: Callable[[], None] | None = None,
        on_resource_updated: Callable[[str], None] | None = None,
        log_level: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        reset_on_progress: bool = False,
        extensions: Mapping[str, Mapping[str, Any]] | Sequence[str] = (),
        cache: bool = True,
    ) -> None:
        _check_options(revision, timeout, log_level)
        self._on_message = _MessageCallbacks(on_notification, on_progress, on_log, on_task)
        self._on_change = on_change = _ChangeCallbacks(
            on_tool_list_changed, on_prompt_list_changed, on_resource_list_changed, on_resource_updated
        )
        _refuse_async({**self._on_message._asdict(), **on_change._asdict()})
        self._transport = transport = _transport_to(target, headers or {})
        self._requests = Requests(
            transport,
            Answers(elicit, sample, roots, declared_extensions(extensions)),
            revision=revision,
            log_level="info" if log_level is None and on_log is not None else log_level,
            timeout=timeout,
            on_notification=self._notified,
            on_session=self._session_began,
        )
        self._tasks = TaskClient(self._requests, on_task)
        self._cache = ListCache()
        self._uses_cache = cache and not getattr(transport, "is_local", False)
        callbacks = (elicit, sample, roots, on_notification, on_log, on_task, *on_change)
        needs_stream = any(callback is not None for callback in callbacks)
        self._listener = Listener(self._report, on_change.kinds, is_optional=True)
        self._subscriptions = Subscriptions(self._requests, self._drop_changed, needs_stream=needs_stream)
        self._subscriptions.include(self._listener)
        self._progress_callbacks: dict[str | int, OnProgress] = {}
        self._reset_on_progress = reset_on_progress

    @property
    def revision(self) -> str:
        """The revision that client and server use."""
        return self._requests.date

    @property
    def server_info(self) -> dict[str, Any]:
        """The server's Implementation, such as its name and version. Empty if the server does not send it."""
        return self._requests.server_info

    @property
    def capabilities(self) -> dict[str, Any]:
        """The server's capabilities, by name."""
        return self._requests.capabilities

    @property
    def instructions(self) -> str | None:
        """The server's instructions for the model. None if the server does not send any."""
        return self._requests.instructions

    @property
    def session_id(self) -> str | None:
        """The id of the session. None in 2026-07-28, on stdio, and with servers without sessions."""
        return self._requests.session_id

    @property
    def servers(self) -> Mapping[str, UpstreamStatus]:
        """The state of each server of a configuration with several, by the prefix of its names. Otherwise empty."""
        statuses: Mapping[str, UpstreamStatus] = getattr(self._transport, "servers", {})
        return statuses

    async def __aenter__(self) -> Self:
        require_asyncio()
        self._cache.clear()
        await self._requests.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._subscriptions.aclose()
        await self._requests.aclose()

    def _session_began(self) -> None:
        self._subscriptions.session_began()

    async def ping(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as in `call_tool`
        """Return when the server has answered. In 2026-07-28, which has no ``ping``, this is ``server/discover``.

        Args:
            timeout: Seconds that the request may take, instead of the client's `timeout`.

        Raises:
            ClientError: The server does not answer. The subclass names the reason.
        """
        method = "server/discover" if self._requests.revision.per_request else "ping"
        await self._requests.send(method, {}, self._requests.seconds(timeout))

    async def set_logging_level(self, level: str) -> None:
        """Ask for log messages of this level and more severe ones.

        Args:
            level: debug, info, notice, warning, error, critical, alert or emergency.

        Raises:
            ValueError: The level is not one of these.
            MCPError: The server has no log messages.
            ClientError: The request failed.
        """
        if level not in LEVELS:
            raise ValueError(f"level must be one of {', '.join(LEVELS)}; got {level!r}.")
        await self._requests.set_log_level(level)

    async def set_roots(self, roots: Sequence[dict[str, Any]]) -> None:
        """Replace the Root objects, and notify the server of the change. In 2026-07-28 the next request has them.

        Args:
            roots: The Root objects.

        Raises:
            RuntimeError: The client was created without *roots*, so it has not declared the capability.
            TypeError: *roots* is not a list of Root objects.
            ClientError: The notification cannot be sent.
        """
        if self._requests.answers.roots is None:
            raise RuntimeError("Pass roots=[] to the Client, so that it declares the capability.")
        self._requests.answers.roots = checked_roots(roots)
        if not self._requests.revision.per_request:
            await self._requests.notify("notifications/roots/list_changed")

    async def list_tools(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as in `call_tool`
        refresh: bool = False,
    ) -> list[Tool]:
        """Return the definitions of all tools, from all pages of the list.

        In 2026-07-28 over HTTP, a tool with an invalid ``x-mcp-header`` is left out, with a warning in the log.

        Args:
            meta: Members of the requests' `_meta`. The server is then asked, although the list is cached.
            timeout: Seconds that each request may take, instead of the client's `timeout`.
            refresh: Ask the server, although the list is cached.
        """
        tools = await self._definitions("tools/list", Tool, meta, timeout, refresh=refresh)
        return self._requests.usable_tools(tools)

    async def list_resources(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as in `call_tool`
        refresh: bool = False,
    ) -> list[Resource]:
        """Return the definitions of all resources. The arguments are those of `list_tools`."""
        return await self._definitions("resources/list", Resource, meta, timeout, refresh=refresh)

    async def list_resource_templates(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as in `call_tool`
        refresh: bool = False,
    ) -> list[ResourceTemplate]:
        """Return the definitions of all resource templates. The arguments are those of `list_tools`."""
        return await self._definitions("resources/templates/list", ResourceTemplate, meta, timeout, refresh=refresh)

    async def list_prompts(
        self,
        *,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as in `call_tool`
        refresh: bool = False,
    ) -> list[Prompt]:
        """Return the definitions of all prompts. The arguments are those of `list_tools`."""
        return await self._definitions("prompts/list", Prompt, meta, timeout, refresh=refresh)

    @asynccontextmanager
    async def listen(
        self,
        *,
        tools_list_changed: bool = False,
        prompts_list_changed: bool = False,
        resources_list_changed: bool = False,
        resource_subscriptions: Sequence[str] = (),
        timeout: float | None = None,  # noqa: ASYNC109 - as in `call_tool`
    ) -> AsyncGenerator[Changes, None]:
        """Follow changes at the server in an ``async with`` block, in every revision.

        The block begins when the server reports changes. They go on after a broken connection; what was followed is
        then reported as changed.

        Example:
            ```python
            async with client.listen(tools_list_changed=True) as changes:
                async for change in changes:
                    tools = await client.list_tools()
            ```

        Args:
            tools_list_changed: Follow the list of tools.
            prompts_list_changed: Follow the list of prompts.
            resources_list_changed: Follow the lists of resources and templates.
            resource_subscriptions: URIs of resources whose contents to follow.
            timeout: Seconds that the server may take to begin, instead of the client's `timeout`.

        Raises:
            MCPError: The server refuses it.
            ClientError: The request failed, or the server does not report one of these.
        """
        if isinstance(resource_subscriptions, str):
            raise TypeError("resource_subscriptions is a list of URIs, not one URI.")
        chosen = {"tools": tools_list_changed, "prompts": prompts_list_changed, "resources": resources_list_changed}
        changes = Changes()
        listener = Listener(
            changes.add, [kind for kind, is_chosen in chosen.items() if is_chosen], resource_subscriptions
        )
        seconds = self._requests.seconds(timeout)
        await self._subscriptions.add(listener, seconds)
        try:
            yield changes
        finally:
            with suppress(ClientError, MCPError):
                await self._subscriptions.remove(listener, seconds)

    async def subscribe(
        self,
        uri: str | AnyUrl,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as in `call_tool`
    ) -> None:
        """Ask the server to report changes of a resource to `on_resource_updated`, also after a new connection.

        Args:
            uri: The resource's URI.
            timeout: Seconds that the server may take, instead of the client's `timeout`.

        Raises:
            MCPError: The server refuses it.
            ClientError: The request failed, or the server does not report changes of resources.
        """
        text = str(uri)
        if text in self._listener.uris:
            return
        self._listener.uris.add(text)
        try:
            await self._subscriptions.follow(self._requests.seconds(timeout))
        except BaseException:
            self._listener.uris.discard(text)
            raise

    async def unsubscribe(
        self,
        uri: str | AnyUrl,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as in `call_tool`
    ) -> None:
        """End what `subscribe` began. The arguments and errors are the same."""
        self._listener.uris.discard(str(uri))
        await self._subscriptions.follow(self._requests.seconds(timeout))

    async def list_skills(self) -> list[Skill]:
        """Return the skills that the server lists, from all pages; none if the server does not declare skills.

        No file is read. A skill whose entry is not valid is left out, which is logged. The list may be incomplete, so
        `get_skill` may find others.
        """
        if not has_skills(self.capabilities):
            return []
        return skills_of(await self.list_items("skills/list", "skills"), self._requests)

    async def get_skill(self, uri: str) -> Skill:
        """Return a skill by the URI of its SKILL.md, also one that is not listed.

        Args:
            uri: The URI, such as ``skill://deploy/SKILL.md``.

        Raises:
            MCPError: The server does not have the skill.
            SkillError: The server does not declare skills, or the entry is not valid.
            ClientError: The request failed. The subclass names the reason.
        """
        if not has_skills(self.capabilities):
            raise SkillError("The server does not declare skills.")
        result = await self._requests.send_checked("skills/get", {"uri": uri}, self._requests.seconds(None))
        skill = skill_of(result.get("skill"), self._requests)
        if skill.uri != uri:
            raise SkillError("The server has answered with another skill.")
        return skill

    async def read_skill(
        self,
        skill: Skill,
        file: str = "SKILL.md",
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> SkillFile:
        """Read a file of a skill, and verify it: its size, its digest and, for SKILL.md, its frontmatter.

        Args:
            skill: The skill, from `list_skills` or `get_skill` of this client.
            file: The path of the file below the skill's folder, or its URI.
            timeout: Seconds that the request may take, instead of the client's `timeout`.

        Raises:
            SkillError: The skill does not list the file, or the file is not what is listed. After a change of the
                skill, `get_skill` returns the new entry.
            ValueError: The skill is one of another client.
            MCPError: The server does not have the file any more.
            ClientError: The request failed. The subclass names the reason.
            ModuleNotFoundError: PyYAML is not installed: ``pip install "funcmcp[skills]"``.
        """
        uri = uri_of_file(skill, file, self._requests)
        return verified_file(skill, uri, await self.read_resource(uri, timeout=timeout))

    async def list_folder(self, uri: str) -> list[Resource]:
        """Return the files and folders in a folder of a skill, from all pages. Folders are of type inode/directory.

        What is there may be newer than a skill that the program has: only files that the skill lists can be read.

        Args:
            uri: The URI of the folder, such as ``skill://deploy/references``.

        Raises:
            MCPError: The server has no folder there.
            SkillError: The server does not list folders.
            ClientError: The request failed. The subclass names the reason.
        """
        if not lists_folders(self.capabilities):
            raise SkillError("The server does not list folders.")
        method = "resources/directory/read"
        return objects_of(await self._requests.list_items(method, "resources", {"uri": uri}), Resource)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the client cancels the request at the server, too
        raise_on_error: bool = False,
    ) -> CallToolResult:
        """Call a tool and return its result.

        If the server runs the call as a task, wait for the end of the task. If the caller stops waiting, or an answer
        to a question fails, cancel the task.

        Args:
            name: The tool's name.
            arguments: The tool's arguments.
            meta: Members of the request's `_meta`, such as ``{"progressToken": 1}``.
            on_progress: Receives the progress of this call, instead of the client's `on_progress`. A task has no
                progress; see the client's `on_task`.
            timeout: Seconds that each request may take, instead of the client's `timeout`. A task may take longer.
            raise_on_error: Raise ToolError if the tool fails. By default the result has `is_error` set.

        Raises:
            MCPError: The server rejects the request, for example because the tool does not exist; or the task failed.
            ToolError: The tool failed, and *raise_on_error* is set.
            ClientError: The request failed. The subclass names the reason.
        """
        task = await self.start_tool(name, arguments, meta=meta, on_progress=on_progress, timeout=timeout)
        try:
            return await task.result(raise_on_error=raise_on_error)
        except BaseException:
            await task.cancel_quietly()
            raise

    async def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> ToolTask:
        """Call a tool, and return a handle as soon as the call has become a task or has ended.

        In 2026-07-28 the server decides whether a call becomes a task. In 2025-11-25 the client asks for a task if the
        tool supports it. Older revisions have no tasks.

        Args:
            name: The tool's name.
            arguments: The tool's arguments.
            meta: Members of the request's `_meta`.
            on_progress: Receives the progress of the call until it has become a task.
            timeout: Seconds that each request may take, instead of the client's `timeout`.

        Raises:
            MCPError: The server rejects the request.
            ClientError: The request failed. The subclass names the reason.
        """
        params: dict[str, Any] = {"name": name, "arguments": dict(arguments or {})}
        if await self._tasks.asks_for_task(name):
            params["task"] = {}
        result = await self._in_rounds("tools/call", params, meta, on_progress, timeout)
        return self._tasks.started(result, timeout)

    async def get_task(self, task_id: str) -> ToolTask:
        """Return a handle for a task that exists at the server, for example after a new start of the client.

        Args:
            task_id: The id of the task.

        Raises:
            MCPError: The server does not have the task, or it belongs to another principal.
            ClientError: The request failed, or the revision has no tasks.
        """
        seconds = self._requests.seconds(None)
        return ToolTask(self._tasks, await self._tasks.get(task_id, seconds), None)

    async def read_resource(
        self,
        uri: str | AnyUrl,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> ReadResourceResult:
        """Read a resource and return its contents. The other arguments and the errors are those of `call_tool`.

        Args:
            uri: The resource's URI.
            meta: Members of the request's `_meta`.
            on_progress: Receives the progress of this request.
            timeout: Seconds that each request may take.
        """
        result = await self._in_rounds("resources/read", {"uri": str(uri)}, meta, on_progress, timeout)
        return ReadResourceResult(result)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        meta: Mapping[str, Any] | None = None,
        on_progress: OnProgress | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> GetPromptResult:
        """Get a prompt and return its messages. The errors are those of `call_tool`.

        Args:
            name: The prompt's name.
            arguments: The prompt's arguments. All of them are strings.
            meta: Members of the request's `_meta`.
            on_progress: Receives the progress of this request.
            timeout: Seconds that each request may take.
        """
        params = {"name": name, "arguments": dict(arguments or {})}
        return GetPromptResult(await self._in_rounds("prompts/get", params, meta, on_progress, timeout))

    async def complete(
        self,
        ref: Mapping[str, str],
        name: str,
        value: str,
        *,
        context: Mapping[str, str] | None = None,
        meta: Mapping[str, Any] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> Completion:
        """Return values that complete an argument of a prompt or a resource template.

        Args:
            ref: The feature: ``{"type": "ref/prompt", "name": ...}`` or ``{"type": "ref/resource", "uri": ...}``.
            name: The argument's name.
            value: The beginning of the argument's value.
            context: The values of arguments that are already set, by name.
            meta: Members of the request's `_meta`.
            timeout: Seconds that the request may take.
        """
        params: dict[str, Any] = {"ref": dict(ref), "argument": {"name": name, "value": value}}
        if context:
            params["context"] = {"arguments": dict(context)}
        if meta:
            params["_meta"] = dict(meta)
        result = await self._requests.send_checked("completion/complete", params, self._requests.seconds(timeout))
        return completion_of(member_of(result, "completion", dict, "completion/complete"))

    async def list_items(self, method: str, member: str) -> list[Any]:
        """Return the items of a list as the server sends them, from all pages.

        Args:
            method: The method, such as ``tools/list``.
            member: The member of the result that holds the items, such as ``tools``.

        Raises:
            InvalidResponseError: A page does not have the member, or there are more than 1,000 pages.
        """
        return await self._requests.list_items(method, member)

    async def _definitions(
        self,
        method: str,
        kind: type[D],
        meta: Mapping[str, Any] | None,
        timeout: float | None,  # noqa: ASYNC109 - as above
        *,
        refresh: bool,
    ) -> list[D]:
        """Return the definitions of a list of features, from the cache or from all pages."""
        credentials = self._requests.credentials
        if self._uses_cache and self._requests.revision.per_request and not refresh and not meta:
            cached = self._cache.get(method, credentials)
            if cached is not None:
                return objects_of(cached, kind)
        begun = self._cache.begin()
        params = {"_meta": dict(meta)} if meta else {}
        pages = [page async for page in self._requests.pages(method, params, timeout)]
        items = [item for page in pages for item in member_of(page, FEATURE_LISTS[method], list, method)]
        definitions = objects_of(items, kind)
        self._cache.put(method, items, pages, begun, credentials)
        return definitions

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> dict[str, Any]:
        """Send a request of any method and return its result.

        Args:
            method: The method.
            params: The request's params. The client adds the members of `_meta` that the revision requires.
            timeout: Seconds that the request may take, instead of the client's `timeout`.

        Raises:
            MCPError: The response is an error.
            ClientError: The request failed. The subclass names the reason.
        """
        return await self._requests.send(method, params or {}, self._requests.seconds(timeout))

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification. Raise ClientError if it cannot be sent."""
        await self._requests.notify(method, params)

    async def _in_rounds(
        self,
        method: str,
        params: dict[str, Any],
        meta: Mapping[str, Any] | None,
        on_progress: OnProgress | None,
        timeout: float | None,  # noqa: ASYNC109 - as above
    ) -> dict[str, Any]:
        """Send a request, repeat it with answers while the server asks for input, and return its result."""
        if meta:
            params["_meta"] = dict(meta)
        seconds = self._requests.seconds(timeout)
        result_types = _RESULT_TYPES[method]
        token = self._add_progress_token(params, on_progress or self._on_message.on_progress)
        try:
            result = await self._requests.send_checked(method, params, seconds, *result_types)
            for _ in range(_MAX_ROUNDS):
                if result.get("resultType") != "input_required":
                    return result
                repeated = await self._next_round(params, result, method)
                result = await self._requests.send_checked(method, repeated, seconds, *result_types)
        finally:
            if token is not None:
                del self._progress_callbacks[token]
        raise InvalidResponseError(f"{method} asked for input more than {_MAX_ROUNDS} times.")

    def _add_progress_token(self, params: dict[str, Any], on_progress: OnProgress | None) -> str | int | None:
        """Add a progress token to *params* if there is a use for progress. Return the token."""
        if on_progress is None and self._reset_on_progress:
            on_progress = _ignore
        if on_progress is None:
            return None
        _refuse_async({"on_progress": on_progress})
        meta = params.setdefault("_meta", {})
        token: str | int = meta.setdefault("progressToken", f"progress-{self._requests.next_id()}")
        self._progress_callbacks[token] = on_progress
        return token

    async def _next_round(self, params: dict[str, Any], result: dict[str, Any], method: str) -> dict[str, Any]:
        """Return the params of the next round: those of the request, with answers to the questions in *result*."""
        responses = {}
        questions = result.get("inputRequests") or {}
        if not isinstance(questions, dict):
            raise InvalidResponseError(f"'inputRequests' in the result of {method} is not an object.")
        for key, question in questions.items():
            if not isinstance(question, dict):
                raise InvalidResponseError(f"A member of 'inputRequests' in the result of {method} is not an object.")
            responses[key] = await self._requests.answers.to(question)
        repeated = {**params, "inputResponses": responses}
        if "requestState" in result:
            repeated["requestState"] = result["requestState"]
        return repeated

    def _notified(self, notification: dict[str, Any]) -> None:
        method = notification["method"]
        params = notification.get("params")
        if not isinstance(params, dict):
            params = {}
        if method in {"notifications/tasks", "notifications/tasks/status"}:
            self._tasks.notified(params)
        if self._on_message.on_notification is not None:
            self._on_message.on_notification(notification)
        if method == "notifications/message" and self._on_message.on_log is not None:
            self._on_message.on_log(log_message_of(params))
        if method == "notifications/progress":
            self._progressed(params)
        self._subscriptions.notified(method, params)

    def _progressed(self, params: dict[str, Any]) -> None:
        token, update = params.get("progressToken"), progress_of(params)
        if not isinstance(token, str | int) or token not in self._progress_callbacks or update is None:
            return
        if self._reset_on_progress:
            self._requests.restart_time(token)
        self._progress_callbacks[token](update)

    def _drop_changed(self, change: Change) -> None:
        """Drop what the client has of a list that has changed."""
        self._cache.drop(change.kind)
        if change.kind == "tools":
            self._requests.forget_tools()

    def _report(self, change: Change) -> None:
        """Call the callback for a change."""
        callback = self._on_change.of_lists.get(change.kind)
        if callback is not None:
            callback()
        if change.uri is not None and self._on_change.on_resource_updated is not None:
            self._on_change.on_resource_updated(change.uri)


def _ignore(_update: ProgressUpdate) -> None:
    """Handle no progress."""


def _check_options(revision: str | None, timeout: float | None, log_level: str | None) -> None:
    if revision is not None and revision not in REVISIONS:
        raise ValueError(f"revision must be one of {', '.join(REVISIONS)}; got {revision!r}.")
    _check_timeout(timeout)
    if log_level is not None and log_level not in LEVELS:
        raise ValueError(f"log_level must be one of {', '.join(LEVELS)}; got {log_level!r}.")


def _refuse_async(callbacks: Mapping[str, Callable[..., None] | None]) -> None:
    """Raise TypeError if a callback is an async function, which would never run."""
    for name, callback in callbacks.items():
        method = getattr(type(callback), "__call__", None)  # noqa: B004 - that of an object may be async, too
        if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(method):
            raise TypeError(f"{name} must be a plain function, not an async one. Start a task in it for what is async.")


def _check_timeout(timeout: float | None) -> None:
    """Raise TypeError or ValueError for a time that is not a positive number of seconds, or None."""
    if timeout is not None and not isinstance(timeout, int | float):
        raise TypeError(f"timeout must be a number of seconds, or None for no limit; got {timeout!r:.80}.")
    if timeout is not None and not timeout > 0:
        raise ValueError(f"timeout must be more than 0 seconds, or None for no limit; got {timeout!r}.")


def _transport_to(target: Target | Mapping[str, Any] | PathLike[str], headers: Mapping[str, str]) -> Transport:
    """Return the transport to a server, or to the servers of a configuration."""
    if isinstance(target, str) and target.endswith((".json", ".toml")) and "://" not in target:
        target = Path(target)
    if isinstance(target, PathLike) and Path(target).suffix in {".py", ".js"}:
        raise ValueError(f"{target} is a script. Pass the command that runs it: StdioCommand('python', 'server.py').")
    if isinstance(target, Mapping | PathLike):
        from funcmcp._upstreams.configured_transport import configured_transport  # noqa: PLC0415 - few clients need it

        return configured_transport(target, headers)
    return transport_for(target, headers)
