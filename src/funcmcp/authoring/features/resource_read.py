"""Running a resource's function: variables of the URI in, contents out."""

from __future__ import annotations

import functools
from collections.abc import Sequence, Set
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from funcmcp.authoring.calling.arguments import is_field, reader_of, text_parts_of
from funcmcp.authoring.calling.completers import choices_of
from funcmcp.authoring.calling.feature_context import ResourceContext
from funcmcp.authoring.signatures.annotations import marks_of, parts_of_type, union_members, without_marks
from funcmcp.authoring.signatures.signature import EMPTY
from funcmcp.authoring.values.content import Contents, base64
from funcmcp.authoring.values.result_writer import Writer, awaited, unwritable
from funcmcp.authoring.values.sdk_results import converted, is_sdk_type
from funcmcp.protocol.codec import encode, encode_text
from funcmcp.protocol.errors import InvalidParams, ResourceNotFound, ToolError
from funcmcp.server.catalog.features import EncodedResult
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from funcmcp.authoring.calling.arguments import Reader
    from funcmcp.authoring.calling.function_call import FunctionCall
    from funcmcp.authoring.features.ui import UIResource
    from funcmcp.authoring.signatures.signature import Parameter
    from funcmcp.protocol.uri_template import URITemplate, Values
    from funcmcp.server.calls.context import RequestContext

_LISTS = (list, tuple)
_BYTES = (bytes, bytearray, memoryview)
_TEXT, _BINARY, _JSON = "text/plain", "application/octet-stream", "application/json"
_UNTYPED = (EMPTY, Any, object, str, bytes, bytearray, memoryview)
"""Annotations that leave it to the value."""


class Reading:
    """Reads one resource, or those of one template.

    Args:
        call: runs the function.
        template: of the URIs; without variables for one resource.
        mime_type: the media type that the author chose, if any.
        ui: what a page may do.
    """

    def __init__(
        self, call: FunctionCall, template: URITemplate, *, mime_type: str | None, ui: UIResource | None
    ) -> None:
        self._call = call
        self._template = template
        self._mime_type = mime_type
        self._ui = ui
        self._read: Reader | None = None
        self._direct = False
        self._own_type: bytes | None = None
        self._write: Callable[[Any], bytes] = _by_value
        self._end = b""
        self._joined: tuple[str, ...] = ()
        self._choices: dict[str, dict[str, Any]] = {}

    async def run(self, context: RequestContext, uri: str, values: Values) -> EncodedResult:
        """Read a URI: a `ResourceHandler`."""
        read, call = self._read or self.prepare(), self._call
        try:
            kwargs = read(self._given(values) if self._joined or self._choices else values)
        except ToolError as error:
            raise InvalidParams(f"The URI does not fit: {error}", {"uri": uri}) from None
        if self._direct:
            value = await (call.function(**kwargs) if call.is_async else call.call(call.function, kwargs))
            return self._render(uri, value)
        make = functools.partial(ResourceContext, context, uri)
        render = functools.partial(self._render, uri)
        return await self._call.run(context, kwargs, make_context=make, render=render)

    def prepare(self) -> Reader:
        """Return what reads the values of a URI; raise RegistrationError if nothing can."""
        arguments, name, template = self._call.plan.arguments, self._call.name, self._template
        unknown = [parameter.name for parameter in arguments if parameter.name not in template.variables]
        if unknown:
            raise RegistrationError(f"{name} has a parameter {unknown[0]!r}, which is no variable of {template.text}.")
        check_lists(name, template, arguments)
        lists = template.exploded | template.repeated
        self._joined = tuple(
            p.name for p in arguments if p.name in template.exploded and without_marks(p.annotation) is str
        )
        choices = {p.name: choices_of(p.annotation) for p in arguments if p.name not in lists}
        self._choices = {parameter: found for parameter, found in choices.items() if found}
        self._direct = self._call.is_direct
        self._own_type = None if self._mime_type is None else encode(self._mime_type)
        self._end = b"" if self._ui is None else b',"_meta":' + encode({"ui": self._ui.wire})
        self._write = _writing(self._call.signature.returns(), name)
        self._read = reader_of(text_parts_of(arguments, name), lax=True)
        return self._read

    def _given(self, values: Values) -> dict[str, Any]:
        """Return the values with choices by their text, and one text for each path that the function wants as one."""
        given: dict[str, Any] = {**values}
        for name, choices in self._choices.items():
            if name in given:
                given[name] = choices.get(given[name], given[name])
        for name in self._joined:
            if name in given:
                given[name] = "/".join(given[name])
        return given

    def _render(self, uri: str, value: Any) -> EncodedResult:
        """Return what a function returned as the contents of a resource; raise ValueError for what JSON can't say."""
        if value is None:
            raise ResourceNotFound(uri)
        value = converted(value)
        if isinstance(value, _LISTS) and value and is_sdk_type(type(value[0])):
            value = [converted(item) for item in value]
        if isinstance(value, _LISTS) and value and all(isinstance(item, Contents) for item in value):
            return EncodedResult(b'{"contents":[%b]}' % b",".join(self._contents(uri, item) for item in value))
        return EncodedResult(b'{"contents":[%b]}' % self._contents(uri, value))

    def _contents(self, uri: str, value: Any) -> bytes:
        if isinstance(value, Contents):
            return self._chosen(uri, value)
        if isinstance(value, str):
            mime_type, member, text = b'"%b"' % _TEXT.encode(), b"text", value
        elif isinstance(value, _BYTES):
            mime_type, member, text = b'"%b"' % _BINARY.encode(), b"blob", base64(bytes(value))
        else:
            mime_type, member, text = b'"%b"' % _JSON.encode(), b"text", self._as_json(value)
        written = (encode_text(uri), self._own_type or mime_type, member, encode_text(text), self._end)
        return b'{"uri":%b,"mimeType":%b,"%b":%b%b}' % written

    def _as_json(self, value: Any) -> str:
        try:
            return self._write(value).decode()
        except ValueError as error:
            raise unwritable(value, self._call.name, error) from None

    def _chosen(self, uri: str, value: Contents) -> bytes:
        contents: dict[str, Any] = {"uri": uri, **value.wire}
        contents.setdefault("mimeType", self._mime_type or (_TEXT if "text" in contents else _BINARY))
        if self._ui is not None:
            contents["_meta"] = {"ui": self._ui.wire, **contents.get("_meta", {})}
        return encode(contents)


def media_type_of(annotation: Any) -> str | None:
    """Return the media type of what a function returns, as far as its annotation tells; None stands for "not found"."""
    members = [without_marks(member) for member in union_members(without_marks(awaited(annotation)))]
    types = {_media_type(member) for member in members if member is not None and member is not type(None)}
    return types.pop() if len(types) == 1 else None


def _media_type(bare: Any) -> str | None:
    origin = get_origin(bare) or bare
    if hasattr(origin, "__total__"):  # a TypedDict, which can't be asked for its subclasses
        return _JSON
    if origin is Any or not isinstance(origin, type) or getattr(origin, "_is_protocol", False):
        return None
    if origin is EMPTY or any(map(is_sdk_type, parts_of_type(bare))):
        return None
    if issubclass(origin, str):
        return _TEXT
    if issubclass(origin, _BYTES):
        return _BINARY
    if issubclass(origin, _LISTS):  # one of Contents has their types
        unknown = any(member is kind for member in get_args(bare) for kind in (Any, object, Contents))
        return None if unknown or bare in _LISTS else _JSON
    is_known = not issubclass(origin, Contents) and not any(issubclass(kind, origin) for kind in (str, *_BYTES))
    return _JSON if is_known else None


def _writing(annotation: Any, name: str) -> Callable[[Any], bytes]:
    """Choose how values are written as JSON: as their annotation says, if it does and is only about them."""
    annotation = awaited(annotation)
    members = map(without_marks, union_members(annotation))
    parts = list(parts_of_type(annotation))
    if any(member in _UNTYPED for member in members) or Contents in parts or any(map(is_sdk_type, parts)):
        return _by_value
    writer = Writer(annotation, name)
    writer.prepare()
    return writer.write


def _by_value(value: Any) -> bytes:
    return encode(value, binary="base64")


def check_lists(name: str, template: URITemplate, parameters: Iterable[Parameter]) -> None:
    """Refuse a list for a variable that is one text, and a single value for one that is a list.

    Raises:
        RegistrationError: the text names the resource's function, and says how to write the template.
    """
    for parameter in parameters:
        variable, is_list = parameter.name, _is_list(parameter.annotation)
        query = variable in template.optional
        if is_list and variable in template.variables and variable not in template.exploded | template.repeated:
            written = f"{{?{variable}*}}" if query else f"{{{variable}*}}"
            raise RegistrationError(f"{name}: {variable!r} is a list, so write {written} in the URI.")
        if variable in template.repeated and _is_single(parameter.annotation):
            raise RegistrationError(f"{name}: {{?{variable}*}} takes several values, so {variable!r} must be a list.")


def _is_list(annotation: Any) -> bool:
    """Tell whether nothing but a list will do; an author's own mark may make one of a text."""
    if get_origin(annotation) is Annotated and not all(map(_is_description, marks_of(annotation))):
        return False
    members = [member for member in union_members(annotation) if member is not type(None)]
    if members != [annotation]:
        return all(map(_is_list, members))
    return _is_kind_of(annotation, (list, tuple, set, frozenset, Sequence, Set)) and not _is_single(annotation)


def _is_description(mark: Any) -> bool:
    """Return whether a mark leaves a type as it is."""
    return isinstance(mark, str) or is_field(mark)


def _is_single(annotation: Any) -> bool:
    marked = any(not isinstance(mark, str) for mark in marks_of(annotation))
    return _is_kind_of(without_marks(annotation), (str, bytes, int, float, Enum)) and not marked


def _is_kind_of(bare: Any, kinds: tuple[type, ...]) -> bool:
    origin = get_origin(bare) or bare
    return isinstance(origin, type) and issubclass(origin, kinds)
