"""What a server offers. A feature is a frozen description with an async handler.

`funcmcp.authoring` makes features from Python functions; another producer may make them from anything
else. The server cannot tell them apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from funcmcp.protocol.codec import decode
from funcmcp.server.catalog.access import SIGNED_IN, Access

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from funcmcp.protocol.headers import MirroredParameter
    from funcmcp.protocol.uri_template import URITemplate, Values
    from funcmcp.server.calls.context import Context

    ToolHandler = Callable[[Context, dict[str, Any]], Coroutine[Any, Any, "dict[str, Any] | JSONResult | RawResponse"]]
    ResourceHandler = Callable[[Context, str, Values], Coroutine[Any, Any, "dict[str, Any] | EncodedResult"]]
    PromptHandler = Callable[[Context, dict[str, str]], Coroutine[Any, Any, "dict[str, Any] | EncodedResult"]]
    Completer = Callable[[Context, str, Mapping[str, str]], Coroutine[Any, Any, "Completion"]]


@dataclass(frozen=True, slots=True)
class RawResponse:
    """A whole JSON-RPC response that a tool made itself; it is sent as it stands."""

    message: dict[str, Any]


class JSONResult:
    """A ``CallToolResult`` of one text block whose parts are JSON texts already, so that they are written only once.

    Attributes:
        text: the block's text, as a JSON string.
        structured: the structured content, as a JSON object; None without.
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
    """A ``ReadResourceResult`` or ``GetPromptResult`` that is a JSON text already, so that it is written only once.

    Attributes:
        text: a JSON object with the result's own members, which every revision has as they are; no ``_meta``.
    """

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text

    def result(self) -> dict[str, Any]:
        """Return the result as a value."""
        result: dict[str, Any] = decode(self.text)
        return result


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    Attributes:
        name: unique in the server, 1 to 128 characters of ``[A-Za-z0-9_.-]``.
        describe: returns the tool's wire description (the newest revision's ``Tool``). Called when a list is
            built, never before, because it may have to generate schemas.
        handler: runs the tool. It gets the request's context and the unvalidated arguments, and returns a
            ``CallToolResult`` in the newest revision's shape without ``resultType``, as a value or as JSON; or raises.
        interactive: whether the handler may report progress, log or ask the client something, so that a
            transport must be ready to stream.
        timeout: seconds after which the call is cancelled; None for no limit.
        mirrored: arguments that 2026-07-28 clients repeat in ``Mcp-Param-*`` headers.
        access: who may call it.
        shown_errors: Types of exceptions whose text clients get; None for the server's.
    """

    name: str
    describe: Callable[[], Mapping[str, Any]]
    handler: ToolHandler
    interactive: bool = False
    timeout: float | None = 60.0
    mirrored: tuple[MirroredParameter, ...] = ()
    access: Access = SIGNED_IN
    shown_errors: tuple[type[BaseException], ...] | None = None

    @property
    def key(self) -> str:
        """The name."""
        return self.name


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource.

    Attributes:
        uri: unique in the server.
        describe: returns the newest revision's ``Resource``.
        handler: reads the resource. It gets the request's context, the URI and no values, and returns a
            ``ReadResourceResult`` with its ``contents`` only; or raises.
        interactive: see `Tool`.
        timeout: see `Tool`.
        access: who may read it.
        shown_errors: See `Tool`.
    """

    uri: str
    describe: Callable[[], Mapping[str, Any]]
    handler: ResourceHandler
    interactive: bool = False
    timeout: float | None = 60.0
    access: Access = SIGNED_IN
    shown_errors: tuple[type[BaseException], ...] | None = None

    @property
    def key(self) -> str:
        """The URI."""
        return self.uri


@dataclass(frozen=True, slots=True)
class ResourceTemplate:
    """All resources whose URIs a template describes.

    Attributes:
        template: the parsed template; its text is unique in the server.
        describe: returns the newest revision's ``ResourceTemplate``.
        handler: as that of `Resource`, with the decoded values of the template's variables.
        interactive: see `Tool`.
        timeout: see `Tool`.
        completers: complete the values of variables, by name.
        access: who may read them, and complete their variables.
        shown_errors: See `Tool`.
    """

    template: URITemplate
    describe: Callable[[], Mapping[str, Any]]
    handler: ResourceHandler
    interactive: bool = False
    timeout: float | None = 60.0
    completers: Mapping[str, Completer] = field(default_factory=dict)
    access: Access = SIGNED_IN
    shown_errors: tuple[type[BaseException], ...] | None = None

    @property
    def key(self) -> str:
        """The template's text."""
        return self.template.text


@dataclass(frozen=True, slots=True)
class ResourceLister:
    """Lists resources of one scheme that are not known before somebody asks.

    Attributes:
        scheme: of the URIs that it lists; unique in the server.
        handler: gets the request's context and returns ``Resource`` objects of the newest revision.
        access: for whom it is asked, whoever else gets the list.
    """

    scheme: str
    handler: Callable[[Context], Coroutine[Any, Any, list[dict[str, Any]]]]
    access: Access = SIGNED_IN

    @property
    def key(self) -> str:
        """The scheme."""
        return self.scheme


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt.

    Attributes:
        name: unique in the server.
        describe: returns the newest revision's ``Prompt``.
        handler: makes the messages. It gets the request's context and the arguments, texts by name, and returns a
            ``GetPromptResult`` in the newest revision's shape without ``resultType``; or raises.
        interactive: see `Tool`.
        timeout: see `Tool`.
        completers: complete arguments, by name.
        access: who may get it, and complete its arguments.
        shown_errors: See `Tool`.
    """

    name: str
    describe: Callable[[], Mapping[str, Any]]
    handler: PromptHandler
    interactive: bool = False
    timeout: float | None = 60.0
    completers: Mapping[str, Completer] = field(default_factory=dict)
    access: Access = SIGNED_IN
    shown_errors: tuple[type[BaseException], ...] | None = None

    @property
    def key(self) -> str:
        """The name."""
        return self.name


@dataclass(frozen=True, slots=True)
class Completion:
    """Suggestions for the rest of a value.

    Attributes:
        values: the best first; clients get at most 100 of them.
        total: how many there are in all, if that is known.
        has_more: whether there are more than those.
    """

    values: Sequence[str]
    total: int | None = None
    has_more: bool = False
