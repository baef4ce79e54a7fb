"""Questions that a tool asks the client, and their answers: elicitation, sampling, roots.

Source: "client/elicitation", "client/sampling", "client/roots" of the revisions that have them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from funcmcp.authoring.values.content import Content
from funcmcp.protocol.errors import ToolError
from funcmcp.server.catalog.registry import RegistrationError

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


_WIRE_NAMES = {
    "system_prompt": "systemPrompt",
    "temperature": "temperature",
    "stop_sequences": "stopSequences",
    "model_preferences": "modelPreferences",
    "include_context": "includeContext",
    "metadata": "metadata",
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

_ACTIONS = ("accept", "decline", "cancel")  # a tuple, because a client may send a value that is not hashable
_FORM_FORMATS = {"date", "date-time", "email", "uri"}


class Question(Protocol):
    """A question to the client."""

    kind: str

    def request(self) -> dict[str, Any]:
        """Return the request's method and params."""

    def read(self, answer: dict[str, Any]) -> Any:
        """Return the tool's value for the client's answer."""


class Elicited(NamedTuple):
    """The user's answer to a form.

    Attributes:
        action: ``"accept"``, ``"decline"`` or ``"cancel"``.
        content: The values of the fields, as an object of the form's type, or as a dict if the form is a schema. None
            if the user did not accept.
    """

    action: str
    content: Any


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


class Elicit:
    """A form for the user.

    Args:
        message: The reason for the question, which the user reads.
        schema: A pydantic model, dataclass or TypedDict with flat fields (strings, numbers, booleans, choices), or a
            form's JSON schema.

    Raises:
        RegistrationError: The type has a field that a form can't show.
    """

    __slots__ = ("_message", "_schema", "_type")

    kind = "elicitation"

    def __init__(self, message: str, schema: Any) -> None:
        self._message = message
        self._type = None if isinstance(schema, dict) else schema
        self._schema: dict[str, Any] = schema if isinstance(schema, dict) else _form(schema)[0]

    def request(self) -> dict[str, Any]:
        """Return the request's method and params."""
        params = {"message": self._message, "requestedSchema": self._schema}
        return {"method": "elicitation/create", "params": params}

    def read(self, answer: dict[str, Any]) -> Elicited:
        """Return the user's answer. Raise ToolError if the content does not fit the form."""
        action = answer.get("action")
        if action not in _ACTIONS:
            raise ToolError("The client answered the form with an unknown action.")
        if action != "accept":
            return Elicited(action, None)
        content = answer.get("content")
        if not isinstance(content, dict):
            raise ToolError("The client accepted the form but sent no content.")
        if self._type is None:
            return Elicited(action, content)
        try:
            return Elicited(action, _form(self._type)[1](content))
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

    def read(self, answer: dict[str, Any]) -> Elicited:
        """Return whether the user agreed to visit the page."""
        action = answer.get("action")
        if action not in _ACTIONS:
            raise ToolError("The client answered with an unknown action.")
        return Elicited(action, None)


class Sample:
    """A request to the client's model.

    Args:
        messages: A prompt, or messages. A string or a content block is a message of the user. A dict has the
            specification's form: ``{"role": "assistant", "content": {...}}``.
        max_tokens: The maximum number of tokens that the model may write.
        options: Options as in `SampleOptions`.
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
            self._params[_WIRE_NAMES[name]] = value

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


def _message(message: str | Content | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(message, str):
        return {"role": "user", "content": {"type": "text", "text": message}}
    if isinstance(message, Content):
        return {"role": "user", "content": message.block}
    return dict(message)


@lru_cache(maxsize=256)
def _form(form: Any) -> tuple[dict[str, Any], Callable[[Any], Any]]:
    """Return the schema of a type's form, and the function that reads its content."""
    from funcmcp.authoring.calling.arguments import reader_of_type  # noqa: PLC0415 - loads pydantic, for tools that ask
    from funcmcp.authoring.values.json_schema import json_schema  # noqa: PLC0415 - loads pydantic
    from funcmcp.authoring.values.pydantic_argument_schemas import argument_schema  # noqa: PLC0415 - loads pydantic

    name = getattr(form, "__name__", repr(form))
    schema = json_schema(argument_schema(form, name, lax=False), "validation", name)
    if schema.get("type") != "object" or "properties" not in schema:
        raise RegistrationError(f"{name} has no named fields, so it can't be a form. Use a model or a dataclass.")
    properties = {key: _field(member, f"{name}.{key}") for key, member in schema["properties"].items()}
    flat: dict[str, Any] = {"type": "object", "properties": properties}
    if "required" in schema:
        flat["required"] = schema["required"]
    return flat, reader_of_type(form, name)


def _field(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the schema of a form's field. Raise RegistrationError if a form can't show it."""
    kind = schema.get("type", "")
    if "const" in schema and kind == "string":
        schema = {**schema, "enum": [schema["const"]]}
    keywords = _FIELD_KEYWORDS.get(kind)
    is_other_array = kind == "array" and "enum" not in schema.get("items", {})
    is_other_enum = kind != "string" and "enum" in schema
    if keywords is None or is_other_array or is_other_enum or "contentEncoding" in schema:
        raise RegistrationError(
            f"{name} can't be shown in a form. Its fields must be strings, numbers, booleans, choices of strings, "
            "or lists of such choices."
        )
    field = {keyword: value for keyword, value in schema.items() if keyword in keywords}
    if field.get("format") not in _FORM_FORMATS:
        field.pop("format", None)
    return field
