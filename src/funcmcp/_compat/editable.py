"""Messages, definitions and contents that middleware of FastMCP edits: objects with settable attributes."""

from __future__ import annotations

import copy
import importlib
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.results.content import base64
from funcmcp._compat.annotations import plain
from funcmcp._objects.mappings import without
from funcmcp._protocol import objects
from funcmcp._protocol.envelope import SERVER_INFO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MEMBERS = {
    "input_schema": "inputSchema",
    "inputSchema": "inputSchema",
    "parameters": "inputSchema",
    "output_schema": "outputSchema",
    "outputSchema": "outputSchema",
    "mime_type": "mimeType",
    "mimeType": "mimeType",
    "uri_template": "uriTemplate",
    "uriTemplate": "uriTemplate",
    "meta": "_meta",
}
"""Members in JSON form by the attributes with other names."""


class ListPage(list[Any]):
    """A page of a list.

    Args:
        next_cursor: The cursor of the next page; None on the last one.
    """

    def __init__(self, next_cursor: str | None = None, items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self.next_cursor = next_cursor


def public_meta(component: Any) -> dict[str, Any]:
    """Return the ``_meta`` of a component as FastMCP has it: with its tags and version, without internal members."""
    meta = dict(component.meta or {})
    public = {name: value for name, value in meta.get("fastmcp", {}).items() if not name.startswith("_")}
    public["tags"] = sorted(component.tags)
    if component.version is not None:
        public["version"] = component.version
    return {**meta, "fastmcp": public}


class EditableParams(SimpleNamespace):
    """The parameters of a request as attributes."""

    def __getattr__(self, name: str) -> Any:
        """Return a parameter by its name in Python: ``meta``, or ``client_info`` for ``clientInfo``."""
        member = _MEMBERS.get(name) or _in_camel_case(name)
        if member == name or member not in vars(self):
            if name == "meta":
                return None
            raise AttributeError(f"The message has no parameter {name!r}.")
        return vars(self)[member]

    def model_copy(self, *, update: dict[str, Any] | None = None, deep: bool = False) -> EditableParams:
        """Return a copy with changed attributes."""
        members = copy.deepcopy(vars(self)) if deep else vars(self)
        return EditableParams(**{**members, **(update or {})})

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return the parameters as a dict."""
        return dict(vars(self))


def _in_camel_case(name: str) -> str:
    first, *parts = name.split("_")
    return first + "".join(part.capitalize() for part in parts)


class Editable(objects.WireObject):
    """An object of the protocol whose attributes can be set. None removes a member."""

    tags: set[str]
    registration: Callable[[str, Any], None] | None = None
    """Sets an attribute of the component that a definition is of; None if only the definition changes."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a member by the name of its attribute."""
        if self.registration is not None:
            self.registration(name, value)
        if name in {"feature", "registration", "source", "tags"}:
            super().__setattr__(name, value)
            return
        if name == "version":
            meta = self.get("_meta") or {}
            self["_meta"] = {**meta, "fastmcp": {**meta.get("fastmcp", {}), "version": value}}
            return
        member = _MEMBERS.get(name, name)
        if value is None:
            self.pop(member, None)
        else:
            self[member] = plain(value)

    key_prefix: str = ""
    """The beginning of the keys of definitions."""
    identifier_member: str = "name"
    """The member that has the name or URI of a definition."""

    @property
    def version(self) -> str | None:
        """The version of a definition, if there are several of its name."""
        version: str | None = (self.get("_meta") or {}).get("fastmcp", {}).get("version")
        return version

    @property
    def key(self) -> str:
        """The key of a definition: the kind, the name or URI, and the version, such as ``"tool:add@1.0"``."""
        return f"{self.key_prefix}:{self.get(self.identifier_member)}@{self.version or ''}"

    @property
    def meta(self) -> dict[str, Any]:
        """The ``_meta``, without the empty tags that clients get of a component that has none."""
        meta = super().meta
        return without(meta, "fastmcp") if meta.get("fastmcp") == {"tags": []} else meta

    def get_meta(self) -> dict[str, Any]:
        """Return the ``_meta`` of a definition with the tags and the version in ``"fastmcp"``."""
        return public_meta(self)

    @property
    def icons(self) -> list[Any] | None:
        """The icons of a definition."""
        icons: list[Any] | None = attributes_of(self.get("icons"))
        return icons

    def __eq__(self, other: object) -> bool:
        """Return whether another object, which may be a model of the official SDK, has the same JSON form."""
        return bool(dict.__eq__(self, plain(other)))

    __hash__ = None  # type: ignore[assignment] # as a dict

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return a copy of the members, with the same attributes: a copy is of the same server."""
        copied = copy.copy(self)
        vars(copied).pop("registration", None)
        for member, value in self.items():
            copied[member] = copy.deepcopy(value, memo)
        return copied

    def model_copy(self, *, update: dict[str, Any] | None = None, deep: bool = False) -> Any:
        """Return a copy with changed attributes."""
        copied = copy.deepcopy(self) if deep else copy.copy(self)
        vars(copied).pop("registration", None)  # a copy is not what clients get
        for name, value in (update or {}).items():
            setattr(copied, name, value)
        return copied

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return the object in JSON form."""
        return dict(self)


class Members(Editable):
    """An object of the protocol whose members are attributes in Python's naming; None for those that it lacks."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        first, *words = name.split("_")
        return attributes_of(self.get(_MEMBERS.get(name) or first + "".join(map(str.title, words))))


def attributes_of(value: Any) -> Any:
    """Return a JSON value whose objects have attributes."""
    if isinstance(value, list):
        return [attributes_of(item) for item in value]
    return Members(value) if type(value) is dict else value


def model_of(name: str, wire: dict[str, Any]) -> Any:
    """Return an object in JSON form as a model of ``mcp.types`` if the program has loaded that module, else as ours.

    Args:
        name: The model's name.
        wire: The object. If there is no such model, or it does not take the object, its members are attributes.
    """
    types: Any = sys.modules.get("mcp.types") or sys.modules.get("mcp_types")
    if types is None:
        types = importlib.import_module("funcmcp._compat.sdk_types")
    model = getattr(types, name, None)
    try:
        return Members(wire) if model is None else model.model_validate(wire)
    except ValueError:
        return Members(wire)


def sdk_object(name: str, members: dict[str, Any]) -> Any:
    """Return an object in JSON form as a model of ``mcp.types``; unchanged if the package `mcp` is not installed.

    Args:
        name: The model's name.
        members: The object. Members may have the names of the model's attributes.
    """
    wire = {_MEMBERS.get(member, member): plain(value) for member, value in members.items()}
    try:
        types = importlib.import_module("mcp.types")
    except ImportError:
        return wire
    return getattr(types, name).model_validate(wire)


class Hints(dict[str, Any]):
    """Annotations with their members as attributes, by the names of the specification or of Python."""

    def __getattr__(self, name: str) -> Any:
        """Return a hint; None if it is not set."""
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(_in_camel_case(name))

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a hint. None removes it."""
        if value is None:
            self.pop(_in_camel_case(name), None)
        else:
            self[_in_camel_case(name)] = value

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Return the annotations in JSON form."""
        return dict(self)


def hints_of(definition: dict[str, Any]) -> Hints | None:
    """Return the annotations of a definition, which change with what is returned; None without."""
    hints = definition.get("annotations")
    if isinstance(hints, dict) and not isinstance(hints, Hints):
        hints = definition["annotations"] = Hints(hints)
    return hints


class ListedResource(Editable, objects.Resource):
    """A resource in the list of a server, with its tags."""

    key_prefix: str = "resource"
    identifier_member: str = "uri"

    @property
    def annotations(self) -> Hints | None:
        """Hints for clients."""
        return hints_of(self)


class ListedTemplate(Editable, objects.ResourceTemplate):
    """A resource template in the list of a server, with its tags."""

    key_prefix: str = "template"
    identifier_member: str = "uriTemplate"

    @property
    def annotations(self) -> Hints | None:
        """Hints for clients."""
        return hints_of(self)


class ListedPrompt(Editable, objects.Prompt):
    """A prompt in the list of a server, with its tags."""

    key_prefix: str = "prompt"


class EditableBlock(Editable, objects.ContentBlock):
    """A content block of a result."""


class EditableContents(Editable, objects.ResourceContents):
    """A part of a resource's contents."""

    @property
    def content(self) -> str | bytes | None:
        """The text or the bytes."""
        return self.data if self.text is None else self.text

    def __setattr__(self, name: str, value: Any) -> None:
        """Set a member by the name of its attribute; ``content`` is the text or the bytes."""
        if name != "content":
            super().__setattr__(name, value)
        elif isinstance(value, bytes):
            self.pop("text", None)
            self["blob"] = base64(value)
        else:
            self.pop("blob", None)
            self["text"] = value


class EditablePromptMessage(Editable, objects.PromptMessage):
    """A message of a prompt."""

    @property
    def content(self) -> EditableBlock:
        """The content block."""
        block: EditableBlock = self["content"]
        return block


class ReadResult(Editable, objects.ReadResourceResult):
    """The result of reading a resource.

    Args:
        result: The result in JSON form.
    """

    def __init__(self, result: dict[str, Any]) -> None:
        parts = objects.objects_of(result.get("contents", []), EditableContents)
        super().__init__({**result, "contents": parts})

    @property
    def contents(self) -> list[Any]:
        """The parts of the contents."""
        parts: list[Any] = self["contents"]
        return parts


class PromptAnswer(Editable, objects.GetPromptResult):
    """The messages that a prompt makes of its arguments.

    Args:
        result: The result in JSON form.
    """

    def __init__(self, result: dict[str, Any]) -> None:
        messages = [
            EditablePromptMessage({**message, "content": EditableBlock(message["content"])})
            for message in result.get("messages", [])
        ]
        super().__init__({**result, "messages": messages})

    @property
    def messages(self) -> list[Any]:
        """The messages."""
        messages: list[Any] = self["messages"]
        return messages


def plain_result(name: str, result: dict[str, Any]) -> Any:
    """Return a result as a model, as `model_of` does. What the server adds to each result is left out."""
    meta = {name: value for name, value in (result.get("_meta") or {}).items() if name != SERVER_INFO}
    wire = {name: value for name, value in result.items() if name not in {"_meta", "resultType"}}
    return model_of(name, {**wire, "_meta": meta} if meta else wire)
