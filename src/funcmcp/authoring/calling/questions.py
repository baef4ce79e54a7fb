"""Questions that a tool asks the client, and the answers that it gets.

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
        """What a sampling request may say beside its messages; see the specification's CreateMessageRequest."""

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
"""The keywords that a form's fields may have; what else a type asks is checked when the answer comes."""

_ACTIONS = ("accept", "decline", "cancel")  # no set: what a client sends may not be hashable
_FORM_FORMATS = {"date", "date-time", "email", "uri"}


class Question(Protocol):
    """Something to ask: how it is sent, and how its answer is read."""

    kind: str

    def request(self) -> dict[str, Any]:
        """Return the request's method and params."""

    def read(self, answer: dict[str, Any]) -> Any:
        """Return the answer as the tool gets it."""


class Elicited(NamedTuple):
    """What the user did with a form.

    Attributes:
        action: ``"accept"``, ``"decline"`` or ``"cancel"``.
        content: what was filled in, as the type that was asked for (a dict for a schema); None unless accepted.
    """

    action: str
    content: Any


class Sampled(NamedTuple):
    """What the client's model said.

    Attributes:
        text: all its text.
        content: the content blocks as they came.
        model: the model's name.
        role: ``"assistant"`` as a rule.
        stop_reason: why it stopped, if that is known.
    """

    text: str
    content: list[dict[str, Any]]
    model: str
    role: str
    stop_reason: str | None


class Root(NamedTuple):
    """A folder or file that the client lets servers work on."""

    uri: str
    name: str | None


class Elicit:
    """A form for the user.

    Args:
        message: why the user is asked.
        schema: a pydantic model, dataclass or TypedDict with flat fields (strings, numbers, booleans, choices), or a
            form's JSON schema.

    Raises:
        RegistrationError: the type has a field that a form can't show.
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
        """Return what the user did; raise ToolError if the content does not fit the form."""
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
        message: why the user should.
        url: the page.
        elicitation_id: names the question where the revision wants that.
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
    """A request for the client's model.

    Args:
        messages: a prompt, or messages: strings and content blocks of the user, or dicts as the specification has
            them (``{"role": "assistant", "content": {...}}``).
        max_tokens: the most that the model may write.
        options: see `SampleOptions`.
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
            raise TypeError(f"Unknown keyword: {', '.join(sorted(unknown))}. Known are {', '.join(_WIRE_NAMES)}.")
        given = [messages] if isinstance(messages, str | Content) else messages
        chosen = {_WIRE_NAMES[name]: value for name, value in options.items()}
        self._params = {"messages": [_message(message) for message in given], "maxTokens": max_tokens, **chosen}

    def request(self) -> dict[str, Any]:
        """Return the request's method and params."""
        return {"method": "sampling/createMessage", "params": self._params}

    def read(self, answer: dict[str, Any]) -> Sampled:
        """Return what the model said."""
        content = answer.get("content")
        blocks = [block for block in (content if isinstance(content, list) else [content]) if isinstance(block, dict)]
        text = "".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
        model, role = str(answer.get("model", "")), str(answer.get("role", "assistant"))
        return Sampled(text, blocks, model, role, answer.get("stopReason"))


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
    """Return the form's schema of a type, and the reader of its content."""
    from funcmcp.authoring.calling.arguments import reader_of_type  # noqa: PLC0415 - pydantic, for tools that ask
    from funcmcp.authoring.values.json_schema import json_schema  # noqa: PLC0415 - pydantic
    from funcmcp.authoring.values.pydantic_schemas import core_schema_of, for_arguments  # noqa: PLC0415 - pydantic

    name = getattr(form, "__name__", repr(form))
    schema = json_schema(for_arguments(core_schema_of(form, name), name, lax=False), "validation", name)
    if schema.get("type") != "object" or "properties" not in schema:
        raise RegistrationError(f"A form needs a type with named fields, and {name} has none.")
    properties = {key: _field(member, f"{name}.{key}") for key, member in schema["properties"].items()}
    flat: dict[str, Any] = {"type": "object", "properties": properties}
    if "required" in schema:
        flat["required"] = schema["required"]
    return flat, reader_of_type(form, name)


def _field(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a field as a form may have it."""
    kind = schema.get("type", "")
    if "const" in schema and kind == "string":
        schema = {**schema, "enum": [schema["const"]]}
    known = _FIELD_KEYWORDS.get(kind)
    choices = kind != "array" or "enum" in schema.get("items", {})
    if known is None or not choices or "contentEncoding" in schema or (kind != "string" and "enum" in schema):
        raise RegistrationError(
            f"{name} can't be shown in a form: its fields are strings, numbers, booleans, choices of strings, "
            "and lists of such choices."
        )
    field = {keyword: value for keyword, value in schema.items() if keyword in known}
    if field.get("format") not in _FORM_FORMATS:
        field.pop("format", None)
    return field
