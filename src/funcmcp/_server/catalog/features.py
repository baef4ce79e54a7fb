"""The features of a server. A feature is a frozen definition with an async handler.

`funcmcp._authoring` makes features from Python functions. Other producers (OpenAPI documents, function apps) make the
same objects, so the server treats all features alike.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from funcmcp._auth.access import PRINCIPALS_ONLY, Access
from funcmcp._objects.definitions import definition
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import decode
from funcmcp._server.calls.feature import Feature

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence

    from funcmcp._protocol.completion import Completion
    from funcmcp._protocol.headers import MirroredParameter
    from funcmcp._protocol.uri_template import URITemplate, Values
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature import TimeLimit
    from funcmcp._server.calls.route import RoutedRequest
    from funcmcp._server.catalog.task_options import TaskOptions

    ToolHandler = Callable[
        [RequestContext, dict[str, Any]], Coroutine[Any, Any, "dict[str, Any] | JSONResult | RawResponse"]
    ]
    ResourceHandler = Callable[[RequestContext, str, Values], Coroutine[Any, Any, "dict[str, Any] | EncodedResult"]]
    PromptHandler = Callable[[RequestContext, dict[str, str]], Coroutine[Any, Any, "dict[str, Any] | EncodedResult"]]
    Addable: TypeAlias = "Tool | Resource | ResourceTemplate | ResourceLister | Prompt | Skill | ExtensionMethod"
    MethodHandler = Callable[[RequestContext, dict[str, Any]], Coroutine[Any, Any, dict[str, Any]]]
    Watch = Callable[[str, RequestContext], Coroutine[Any, Any, Callable[[], None]]]
    Completer = Callable[[RequestContext, str, Mapping[str, str]], Coroutine[Any, Any, "Completion"]]


READ_TOOL = "read_result"
"""The name of the built-in tool that reads on in results which were shortened."""

RESULT_SCHEME = "result://"
"""The beginning of the URIs of whole results."""


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
    return [omission._replace(path=(member, *omission.path)) for omission in items]


class Confirmed(NamedTuple):
    """A confirmation of a call.

    Attributes:
        question: The request to the client.
        answer: The client's answer. A call that runs without a question has that of a person who says yes.
    """

    question: Mapping[str, Any]
    answer: Mapping[str, Any]


class Confirmation(Protocol):
    """A person's confirmation, which the handler of a tool asks for before it runs.

    Attributes:
        is_required: Whether a call is refused if its client can't ask a person.
    """

    is_required: bool

    async def ask(self, context: RequestContext, arguments: dict[str, Any]) -> Confirmed | None:
        """Ask the person, and return the confirmation; None if the call needs none. Raise ToolError without one.

        Args:
            context: The request.
            arguments: Those of the call, before validation.
        """


@public("funcmcp.providers")
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
        confirmation: The person's confirmation, which the handler asks for; None if it asks for none.
        left_out: Returns what the schemas in the definition do not say. Paths begin with ``inputSchema`` or
            ``outputSchema``.
        annotations: The annotations in the definition; None if only `describe` knows them.
        reroute: Returns the route of the request that a call of the tool stands for, such as a call of another tool.
            None for tools that answer themselves.
        result_characters: Characters of a result; a longer one is shortened. 0 for no limit, and None for the server's.
        checks_results: Whether a result that middleware makes must fit the output schema.
    """

    name: str
    describe: Callable[[], Mapping[str, Any]]
    handler: ToolHandler
    mirrored: tuple[MirroredParameter, ...] = ()
    task: TaskOptions | None = None
    task_time_limit: TimeLimit | None = None
    check: Callable[[dict[str, Any]], object] | None = None
    confirmation: Confirmation | None = None
    left_out: Callable[[], Sequence[LeftOut]] = tuple
    annotations: Mapping[str, Any] | None = None
    reroute: Callable[[RoutedRequest], RoutedRequest] | None = None
    result_characters: int | None = None
    checks_results: bool = True

    @property
    def key(self) -> str:
        """The name."""
        return self.name


@public("funcmcp.providers")
@definition
class Resource(Feature):
    """One resource.

    Attributes:
        uri: The URI, unique in the server.
        describe: Returns the resource's definition, a ``Resource`` of the newest revision.
        handler: Reads the resource. It gets the request's context, the URI and an empty mapping. It returns a
            ``ReadResourceResult`` with its ``contents`` only, or raises.
        source_uri: Returns the URI before the prefix of a mount, where the resource comes from; None if there is none.
        watch: Begins to report changes of the resource for one client: gets the URI before the prefix, and the request.
            Returns a function that ends it. None for a resource whose changes are reported anyway.
    """

    uri: str
    describe: Callable[[], Mapping[str, Any]]
    handler: ResourceHandler
    source_uri: Callable[[str], str] | None = None
    watch: Watch | None = None

    @property
    def key(self) -> str:
        """The URI."""
        return self.uri


@public("funcmcp.providers")
@definition
class ResourceTemplate(Feature):
    """All resources whose URIs match a template.

    Attributes:
        template: The parsed template; its text is unique in the server.
        describe: Returns the template's definition, a ``ResourceTemplate`` of the newest revision.
        handler: Reads a resource, as that of `Resource`; it also gets the decoded values of the template's variables.
        completers: Functions that complete the values of variables, by the variable's name.
        input_schema: Returns the JSON schema of the variables; None if they have no types.
        source_uri: As for `Resource`.
        watch: As for `Resource`.
    """

    template: URITemplate
    describe: Callable[[], Mapping[str, Any]]
    handler: ResourceHandler
    completers: Mapping[str, Completer] = field(default_factory=dict)
    input_schema: Callable[[], Mapping[str, Any]] | None = None
    source_uri: Callable[[str], str] | None = None
    watch: Watch | None = None

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
        position: As that of a feature. Providers have no such functions, so it is empty.
    """

    scheme: str
    handler: Callable[[RequestContext], Coroutine[Any, Any, list[dict[str, Any]]]]
    access: Access = PRINCIPALS_ONLY
    position: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """The scheme."""
        return self.scheme

    @property
    def version(self) -> None:
        """None: there is one list for each scheme."""


@public("funcmcp.providers")
@definition
class Prompt(Feature):
    """One prompt.

    Attributes:
        name: The name, unique in the server.
        describe: Returns the prompt's definition, a ``Prompt`` of the newest revision.
        handler: Makes the messages. It gets the request's context and the arguments, strings by name. It returns a
            ``GetPromptResult`` of the newest revision without ``resultType``, or raises.
        completers: Functions that complete arguments, by the argument's name.
        input_schema: Returns the JSON schema of the arguments; None if they have no types.
    """

    name: str
    describe: Callable[[], Mapping[str, Any]]
    handler: PromptHandler
    completers: Mapping[str, Completer] = field(default_factory=dict)
    input_schema: Callable[[], Mapping[str, Any]] | None = None

    @property
    def key(self) -> str:
        """The name."""
        return self.name


@public("funcmcp.providers")
@definition
class Skill(Feature):
    """One skill. Its files are resources, which are registered beside it.

    Attributes:
        uri: The URI of its SKILL.md, unique in the server.
        describe: Returns its entry in `skills/list`.
        files: The resources of its files.
    """

    uri: str
    describe: Callable[[], Mapping[str, Any]]
    files: Sequence[Resource]

    @property
    def key(self) -> str:
        """The URI."""
        return self.uri


@definition
class ExtensionMethod(Feature):
    """A method of an extension.

    Attributes:
        name: The value of ``method`` in messages.
        handler: Answers a request. It gets the request's context and the params without ``_meta``, before validation.
            It returns the result without what the revision adds, or raises.
        extension: The extension that clients must declare; None for clients of all kinds.
    """

    name: str
    handler: MethodHandler
    extension: str | None = None

    @property
    def key(self) -> str:
        """The name."""
        return self.name
