"""Questions that a tool asks the client, and their answers: elicitation, sampling, roots.

Source: "client/elicitation", "client/sampling", "client/roots" of the revisions that have them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar, cast, overload

from funcmcp._authoring.results.content import Content
from funcmcp._objects.mappings import only
from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import ToolError
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypedDict, Unpack

    class SampleOptions(TypedDict, total=False):
        """Options of a sampling request; see the specification's CreateMessageRequest."""

        system_prompt: str
        temperature: float
        stop_sequences: Sequence[str]
        model_preferences: Mapping[str, Any]
        include_context: str
        metadata: Mapping[str, Any]
        tools: Sequence[Mapping[str, Any]]
        tool_choice: Literal["auto", "required", "none"] | Mapping[str, Any]


_WIRE_NAMES = {
    "system_prompt": "systemPrompt",
    "temperature": "temperature",
    "stop_sequences": "stopSequences",
    "model_preferences": "modelPreferences",
    "include_context": "includeContext",
    "metadata": "metadata",
    "tools": "tools",
    "tool_choice": "toolChoice",
}
_FIELD_KEYWORDS = {
    "string": {
        *("type", "title", "description", "minLength", "maxLength", "format", "default"),
        *("enum", "enumNames", "oneOf"),
    },
    "integer": {"type", "title", "description", "minimum", "maximum", "default"},
    "number": {"type", "title", "description", "minimum", "maximum", "default"},
    "boolean": {"type", "title", "description", "default"},
    "array": {"type", "title", "description", "minItems", "maxItems", "items", "default"},
}
"""The keywords that a form's fields may have. Other constraints of a type are checked in the answer."""

_ACTIONS: tuple[Literal["accept", "decline", "cancel"], ...] = ("accept", "decline", "cancel")
_TOOL_CHOICES = ("auto", "required", "none")
_FORM_FORMATS = {"date", "date-time", "email", "uri"}


class Question(Protocol):
    """A question to the client."""

    kind: str

    def request(self) -> dict[str, Any]:
        """Return the request's method and params."""

    def read(self, answer: dict[str, Any]) -> Any:
        """Return the tool's value for the client's answer."""


T = TypeVar("T")


class Accepted(NamedTuple, Generic[T]):
    """The answer of a user who has accepted a form.

    Attributes:
        action: ``"accept"``.
        content: The values of the fields, as an object of the form's type, or as a dict if the form is a schema. The
            value itself if the form is a single field. None for a page.
    """

    action: Literal["accept"]
    content: T


class NotAccepted(NamedTuple):
    """The answer of a user who has not accepted a form.

    Attributes:
        action: ``"decline"`` if the user has said no, ``"cancel"`` if the user has closed the form.
        content: None.
    """

    action: Literal["decline", "cancel"]
    content: None = None


Elicited: TypeAlias = Accepted[T] | NotAccepted
"""The user's answer to a form. ``if answer.action == "accept":`` tells type checkers the type of its content."""


class Sampled(NamedTuple):
    """The message of the client's model.

    Attributes:
        text: The text of all its text blocks.
        content: The content blocks as the client sent them.
        model: The model's name.
        role: The role, which is ``"assistant"`` as a rule.
        stop_reason: The reason why the model stopped, if the client sent it.
    """

    text: str
    content: list[dict[str, Any]]
    model: str
    role: str
    stop_reason: str | None


class Root(NamedTuple):
    """A folder or file that servers may work on."""

    uri: str
    name: str | None


@public("funcmcp")
class Elicit(Generic[T]):
    """A form for the user.

    Args:
        message: The reason for the question, which the user reads.
        schema: A pydantic model, dataclass or TypedDict with flat fields (strings, numbers, booleans, choices); a
            single field: ``str``, ``int``, ``float``, ``bool``, an enum or a ``Literal``; a list of texts to choose
            one from, or a list of such a list to choose several from; or a form's JSON schema.

    Raises:
        RegistrationError: A form can't show the type or one of its fields.
    """

    __slots__ = ("_form", "_message", "_schema")

    kind = "elicitation"

    @overload
    def __init__(self, message: str, schema: type[T]) -> None: ...

    @overload
    def __init__(self: Elicit[dict[str, Any]], message: str, schema: dict[str, Any]) -> None: ...

    @overload
    def __init__(self: Elicit[str], message: str, schema: list[str]) -> None: ...

    @overload
    def __init__(self: Elicit[list[str]], message: str, schema: list[list[str]]) -> None: ...

    @overload
    def __init__(self: Elicit[Any], message: str, schema: Any) -> None: ...

    def __init__(self, message: str, schema: Any) -> None:
        self._message = message
        self._form: _Form | None = None
        if isinstance(schema, dict):
            if schema.get("type") != "object":
                raise RegistrationError('A form\'s JSON schema must have the type "object". Pass choices as a list.')
            self._schema: dict[str, Any] = schema
        else:
            self._form = _form_of(_choices(schema) if isinstance(schema, list | tuple) else schema)
            self._schema = self._form.schema

    def request(self) -> dict[str, Any]:
        """Return the request's method and params."""
        params = {"message": self._message, "requestedSchema": self._schema}
        return {"method": "elicitation/create", "params": params}

    def read(self, answer: dict[str, Any]) -> Elicited[T]:
        """Return the user's answer. Raise ToolError if the content does not fit the form."""
        action = _action_of(answer, "The client answered the form with an unknown action.")
        if action != "accept":
            return NotAccepted(action)
        values = answer.get("content")
        content: Any = {} if values is None else values  # None: the user has filled in nothing
        if not isinstance(content, dict):
            raise ToolError("The client accepted the form but sent content that is not an object.")
        if self._form is None:
            if content or not self._schema.get("required"):
                return Accepted(action, cast("T", content))
            raise ToolError("The client accepted the form but sent no content.")
        try:
            return Accepted(action, self._form.read(content))
        except ToolError as error:
            raise ToolError(f"The answer to the form does not fit it:\n{error}") from None


class ElicitURL:
    """A page for the user to visit.

    Args:
        message: The reason for the visit, which the user reads.
        url: The page's URL.
        elicitation_id: The question's id, in revisions that require one.
    """

    __slots__ = ("_params",)

    kind = "elicitation"

    def __init__(self, message: str, url: str, *, elicitation_id: str | None = None) -> None:
        self._params = {"mode": "url", "message": message, "url": url}
        if elicitation_id is not None:
            self._params["elicitationId"] = elicitation_id

    def request(self) -> dict[str, Any]:
        """Return the request's method and params."""
        return {"method": "elicitation/create", "params": self._params}

    def read(self, answer: dict[str, Any]) -> Elicited[None]:
        """Return whether the user agreed to visit the page."""
        action = _action_of(answer, "The client answered with an unknown action.")
        return Accepted(action, None) if action == "accept" else NotAccepted(action)


def _action_of(answer: dict[str, Any], unknown: str) -> Literal["accept", "decline", "cancel"]:
    """Return the action of an answer. Raise ToolError with a message if it is another value."""
    for action in _ACTIONS:
        if answer.get("action") == action:
            return action
    raise ToolError(unknown)


@public("funcmcp")
class Sample:
    """A request to the client's model.

    Args:
        messages: A prompt, or messages. A string or a content block is a message of the user. A dict has the
            specification's form: ``{"role": "assistant", "content": {...}}``.
        max_tokens: The maximum number of tokens that the model may write.
        options: Options as in `SampleOptions`. ``tools`` are definitions as in `tools/list`, with ``name`` and
            ``inputSchema``. ``tool_choice`` is ``"auto"``, ``"required"`` or ``"none"``. Both need a client that
            declares ``sampling.tools`` (2025-11-25 and later). The calls that the model asks for are blocks of the type
            ``tool_use`` in the content of the answer.
    """

    __slots__ = ("_params",)

    kind = "sampling"

    def __init__(
        self,
        messages: str | Content | Sequence[str | Content | Mapping[str, Any]],
        *,
        max_tokens: int,
        **options: Unpack[SampleOptions],
    ) -> None:
        unknown = options.keys() - _WIRE_NAMES.keys()
        if unknown:
            raise TypeError(
                f"Unknown option {', '.join(map(repr, sorted(unknown)))}. Valid options: {', '.join(_WIRE_NAMES)}."
            )
        if isinstance(messages, str | Content):
            messages = [messages]
        self._params: dict[str, Any] = {
            "messages": [_message(message) for message in messages],
            "maxTokens": max_tokens,
        }
        for name, value in options.items():
            self._params[_WIRE_NAMES[name]] = _wire_value(name, value)

    def request(self) -> dict[str, Any]:
        """Return the request's method and params."""
        return {"method": "sampling/createMessage", "params": self._params}

    def read(self, answer: dict[str, Any]) -> Sampled:
        """Return the model's message."""
        content = answer.get("content")
        if not isinstance(content, list):
            content = [content]
        blocks = [block for block in content if isinstance(block, dict)]
        return Sampled(
            text="".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text"),
            content=blocks,
            model=str(answer.get("model", "")),
            role=str(answer.get("role", "assistant")),
            stop_reason=answer.get("stopReason"),
        )


@public("funcmcp")
class ListRoots:
    """A question for the client's roots."""

    __slots__ = ()

    kind = "roots"

    def request(self) -> dict[str, Any]:
        """Return the request's method and params."""
        return {"method": "roots/list", "params": {}}

    def read(self, answer: dict[str, Any]) -> list[Root]:
        """Return the roots."""
        roots = answer.get("roots")
        if not isinstance(roots, list) or not all(isinstance(root, dict) and "uri" in root for root in roots):
            raise ToolError("The client answered with something that is not a list of roots.")
        return [Root(root["uri"], root.get("name")) for root in roots]


def _wire_value(option: str, value: Any) -> Any:
    """Return the value of an option in the specification's form."""
    if option == "tools":
        return [dict(tool) for tool in value]
    if option == "tool_choice" and isinstance(value, str):
        if value not in _TOOL_CHOICES:
            raise ValueError(f"tool_choice must be one of {', '.join(_TOOL_CHOICES)}, not {value!r}.")
        return {"mode": value}
    return value


def _message(message: str | Content | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(message, str):
        return {"role": "user", "content": {"type": "text", "text": message}}
    if isinstance(message, Content):
        return {"role": "user", "content": message.block}
    return dict(message)


def _choices(choices: Sequence[Any]) -> Any:
    """Return the type of a list of texts to choose one from, or of a list of such a list to choose several from."""
    if len(choices) == 1 and isinstance(choices[0], list | tuple):
        return list[_choices(choices[0])]  # type: ignore[misc] # a type that is made here
    if not choices or not all(isinstance(choice, str) for choice in choices):
        raise RegistrationError("The choices of a form must be a list of at least one text.")
    return Literal[tuple(choices)]


class _Form(NamedTuple):
    """A form of a type: its schema, and the function that reads its content."""

    schema: dict[str, Any]
    read: Callable[[Any], Any]


@lru_cache(maxsize=256)
def _form_of(form: Any) -> _Form:
    """Return the form of a type. A type without fields becomes a form with one field, ``value``."""
    from funcmcp._authoring.calling.arguments import reader_of_type  # noqa: PLC0415 - loads pydantic, for tools that ask
    from funcmcp._authoring.schemas.json_schema import json_schema, without_null  # noqa: PLC0415 - loads pydantic
    from funcmcp._authoring.schemas.pydantic_argument_schemas import argument_schema  # noqa: PLC0415 - loads pydantic

    name = getattr(form, "__name__", repr(form))
    schema = json_schema(argument_schema(form, name, lax=False), "validation", name)
    if schema.get("type") != "object":
        from typing_extensions import TypedDict  # noqa: PLC0415 - pydantic requires this TypedDict on Python 3.11

        single = _form_of(TypedDict(name, {"value": form}))  # type: ignore[operator] # a type that is made here
        return _Form(single.schema, lambda content: single.read(content)["value"])
    if "properties" not in schema:
        raise RegistrationError(f"{name} has no named fields, so it can't be a form. Use a model or a dataclass.")
    properties = {key: _field(without_null(member), f"{name}.{key}") for key, member in schema["properties"].items()}
    flat: dict[str, Any] = {"type": "object", "properties": properties}
    if "required" in schema:
        flat["required"] = schema["required"]
    return _Form(flat, reader_of_type(form, name))


def _field(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the schema of a form's field. Raise RegistrationError if a form can't show it."""
    kind = schema.get("type", "")
    keywords = _FIELD_KEYWORDS.get(kind)
    is_other_array = kind == "array" and "enum" not in schema.get("items", {})
    is_other_enum = kind != "string" and "enum" in schema
    if keywords is None or is_other_array or is_other_enum or "contentEncoding" in schema:
        raise RegistrationError(
            f"{name} can't be shown in a form. Its fields must be strings, numbers, booleans, choices of strings, "
            "or lists of such choices."
        )
    field = only(schema, keywords)
    if field.get("format") not in _FORM_FORMATS:
        field.pop("format", None)
    return field
