"""The features of a server. A feature is a frozen definition with an async handler.

`funcmcp._authoring` makes features from Python functions. Other producers (OpenAPI documents, function apps) make the
same objects, so the server treats all features alike.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._auth.access import PRINCIPALS_ONLY, Access
from funcmcp._definitions import definition
from funcmcp._protocol.codec import decode
from funcmcp._server.calls.feature import Feature

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence

    from funcmcp._protocol.completion import Completion
    from funcmcp._protocol.headers import MirroredParameter
    from funcmcp._protocol.uri_template import URITemplate, Values
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature import TimeLimit
    from funcmcp._server.catalog.task_options import TaskOptions

    ToolHandler = Callable[
        [RequestContext, dict[str, Any]], Coroutine[Any, Any, "dict[str, Any] | JSONResult | RawResponse"]
    ]
    ResourceHandler = Callable[[RequestContext, str, Values], Coroutine[Any, Any, "dict[str, Any] | EncodedResult"]]
    PromptHandler = Callable[[RequestContext, dict[str, str]], Coroutine[Any, Any, "dict[str, Any] | EncodedResult"]]
    Completer = Callable[[RequestContext, str, Mapping[str, str]], Coroutine[Any, Any, "Completion"]]


class RawResponse(NamedTuple):
    """A complete JSON-RPC response that a tool made; the server sends it unchanged."""

    message: dict[str, Any]


class JSONResult:
    """A ``CallToolResult`` of one text block whose parts are JSON text already, so that nothing is encoded twice.

    Attributes:
        text: The block's text, as a JSON string.
        structured: The structured content, as a JSON object; None if the result has none.
    """

    __slots__ = ("structured", "text")

    def __init__(self, text: bytes, structured: bytes | None = None) -> None:
        self.text = text
        self.structured = structured

    def result(self) -> dict[str, Any]:
        """Return the CallToolResult as a value."""
        result: dict[str, Any] = {"content": [{"type": "text", "text": decode(self.text)}]}
        if self.structured is not None:
            result["structuredContent"] = decode(self.structured)
        return result


class EncodedResult:
    """A ``ReadResourceResult`` or ``GetPromptResult`` that is JSON text already, so that nothing is encoded twice.

    Attributes:
        text: A JSON object with the members that every revision has in the same form; no ``_meta``.
    """

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text

    def result(self) -> dict[str, Any]:
        """Return the result as a value."""
        result: dict[str, Any] = decode(self.text)
        return result


class LeftOut(NamedTuple):
    """A keyword of a type that its schema does not have, because clients would reject it. The server checks it.

    Attributes:
        path: The keyword's place in the schema, such as ``("properties", "code", "pattern")``.
        value: Its value.
        reason: Why it is left out.
    """

    path: tuple[str | int, ...]
    value: Any
    reason: str


def in_member(member: str, items: Iterable[LeftOut]) -> list[LeftOut]:
    """Return what a schema does not say, with paths that begin with the schema's member of a tool's definition."""
    return [item._replace(path=(member, *item.path)) for item in items]


@definition
class Tool(Feature):
    """One tool.

    Attributes:
        name: The name, unique in the server: 1 to 128 characters of ``[A-Za-z0-9_.-]``.
        describe: Returns the tool's definition, a ``Tool`` of the newest revision. It is called when a list is
            built and never before, because it may have to generate schemas.
        handler: Runs the tool. It gets the request's context and the arguments before validation. It returns a
            ``CallToolResult`` of the newest revision without ``resultType``, as a value or as JSON text, or raises.
        mirrored: Arguments that 2026-07-28 clients repeat in ``Mcp-Param-*`` headers.
        task: How calls become tasks; None if they never do.
        task_time_limit: The time limit of one run of a task; None for as long as the task may take.
        check: Raises what the handler raises for invalid arguments, without running the tool; None if it can't.
        left_out: Returns what the schemas in the definition do not say. Paths begin with ``inputSchema`` or
            ``outputSchema``.
    """

    name: str
    describe: Callable[[], Mapping[str, Any]]
    handler: ToolHandler
    mirrored: tuple[MirroredParameter, ...] = ()
    task: TaskOptions | None = None
    task_time_limit: TimeLimit | None = None
    check: Callable[[dict[str, Any]], object] | None = None
    left_out: Callable[[], Sequence[LeftOut]] = tuple

    @property
    def key(self) -> str:
        """The name."""
        return self.name


@definition
class Resource(Feature):
    """One resource.

    Attributes:
        uri: The URI, unique in the server.
        describe: Returns the resource's definition, a ``Resource`` of the newest revision.
        handler: Reads the resource. It gets the request's context, the URI and an empty mapping. It returns a
            ``ReadResourceResult`` with its ``contents`` only, or raises.
    """

    uri: str
    describe: Callable[[], Mapping[str, Any]]
    handler: ResourceHandler

    @property
    def key(self) -> str:
        """The URI."""
        return self.uri


@definition
class ResourceTemplate(Feature):
    """All resources whose URIs match a template.

    Attributes:
        template: The parsed template; its text is unique in the server.
        describe: Returns the template's definition, a ``ResourceTemplate`` of the newest revision.
        handler: Reads a resource, as that of `Resource`; it also gets the decoded values of the template's variables.
        completers: Functions that complete the values of variables, by the variable's name.
    """

    template: URITemplate
    describe: Callable[[], Mapping[str, Any]]
    handler: ResourceHandler
    completers: Mapping[str, Completer] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The template's text."""
        return self.template.text


@definition
class ResourceLister:
    """A function that lists the resources of one URI scheme each time that a client lists resources.

    Attributes:
        scheme: The scheme of the URIs; unique in the server.
        handler: Gets the request's context and returns ``Resource`` objects of the newest revision.
        access: The callers for whom it is called.
    """

    scheme: str
    handler: Callable[[RequestContext], Coroutine[Any, Any, list[dict[str, Any]]]]
    access: Access = PRINCIPALS_ONLY

    @property
    def key(self) -> str:
        """The scheme."""
        return self.scheme


@definition
class Prompt(Feature):
    """One prompt.

    Attributes:
        name: The name, unique in the server.
        describe: Returns the prompt's definition, a ``Prompt`` of the newest revision.
        handler: Makes the messages. It gets the request's context and the arguments, strings by name. It returns a
            ``GetPromptResult`` of the newest revision without ``resultType``, or raises.
        completers: Functions that complete arguments, by the argument's name.
    """

    name: str
    describe: Callable[[], Mapping[str, Any]]
    handler: PromptHandler
    completers: Mapping[str, Completer] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name."""
        return self.name
