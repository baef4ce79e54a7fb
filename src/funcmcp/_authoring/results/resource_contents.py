"""What a resource's function returns, as the contents of a ``ReadResourceResult`` in JSON.

A text becomes ``text/plain``, bytes become a base64 blob of ``application/octet-stream``, and any other value becomes
JSON, unless the author chose a media type. How JSON is written is decided once, by the return annotation.

Source: 2026-07-28 "server/resources".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args, get_origin

from funcmcp._authoring.results.content import Content, Contents, ContentsResult, base64
from funcmcp._authoring.results.pictures import picture_of
from funcmcp._authoring.results.result_writer import ResultWriter, jsonable, text_conversion, unwritable
from funcmcp._authoring.results.sdk_results import converted, is_sdk_type
from funcmcp._authoring.schemas.python_values import type_name
from funcmcp._authoring.signatures.annotations import awaited, parts_of_type, union_members, without_marks
from funcmcp._authoring.signatures.signature import EMPTY
from funcmcp._protocol.codec import encode, encode_text
from funcmcp._protocol.errors import ResourceNotFound
from funcmcp._server.catalog.features import EncodedResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LISTS = (list, tuple)
_TEXTS = (str, bytes)
_BYTES = (bytes, bytearray, memoryview)
_TEXT_TYPE, _BINARY_TYPE, _JSON_TYPE = "text/plain", "application/octet-stream", "application/json"
_ENCODED_TYPES = {name: encode(name) for name in (_TEXT_TYPE, _BINARY_TYPE, _JSON_TYPE)}
_UNTYPED = (EMPTY, Any, object, str, bytes, bytearray, memoryview)
"""Annotations that do not decide how a value is written."""


class ContentsWriter:
    """Writes what the function of one resource returns.

    Args:
        name: The resource's name, for errors.
        annotation: The function's return annotation, or EMPTY.
        mime_type: The media type that the author chose, if any.
        ui: The ``_meta.ui`` of the contents: what a page may do.
    """

    def __init__(self, name: str, annotation: Any, *, mime_type: str | None, ui: Mapping[str, Any] | None) -> None:
        self._name = name
        self._mime_type = mime_type
        self._encoded_mime_type = None if mime_type is None else encode(mime_type)
        self._ui = ui
        self._suffix = b"" if ui is None else b',"_meta":' + encode({"ui": ui})
        self._write_json = _json_writer(annotation, name)
        self._convert_text = text_conversion(annotation, name)

    def result(self, uri: str, value: Any) -> EncodedResult | dict[str, Any]:
        """Return the result for a returned value.

        Raises:
            ResourceNotFound: The value is None.
            ValueError: The value can't be written as JSON.
        """
        if value is None:
            raise ResourceNotFound(uri)
        if isinstance(value, ContentsResult):
            contents = [self._contents_of(uri, part) for part in value]
            if value.meta is None:
                return EncodedResult(encode({"contents": contents}))
            return {"contents": contents, "_meta": dict(value.meta)}
        picture = picture_of(value)
        if picture is not None:
            return self.result(uri, Contents(blob=picture.data, mime_type=picture.media_type))
        value = converted(value)
        if isinstance(value, _LISTS) and value:
            items = value
            if is_sdk_type(type(value[0])):
                items = value = [converted(contents) for contents in value]
            if all(isinstance(contents, Contents) for contents in items):
                return EncodedResult(
                    b'{"contents":[%b]}' % b",".join(self._contents(uri, contents) for contents in items)
                )
        return EncodedResult(b'{"contents":[%b]}' % self._contents(uri, value))

    def _contents(self, uri: str, value: Any) -> bytes:
        if isinstance(value, Content) or (
            isinstance(value, _LISTS) and any(isinstance(element, Content) for element in value)
        ):
            raise self._not_contents(value)
        if isinstance(value, Contents):
            return self._whole_contents(uri, value)
        if self._convert_text is not None and isinstance(value, _TEXTS):
            value = self._convert_text(value)
        if isinstance(value, str):
            mime_type, member, text = _TEXT_TYPE, b"text", value
        elif isinstance(value, _BYTES):
            mime_type, member, text = _BINARY_TYPE, b"blob", base64(bytes(value))
        else:
            mime_type, member, text = _JSON_TYPE, b"text", self._json_text(value)
        encoded_type = self._encoded_mime_type or _ENCODED_TYPES[mime_type]
        members = (encode_text(uri), encoded_type, member, encode_text(text), self._suffix)
        return b'{"uri":%b,"mimeType":%b,"%b":%b%b}' % members

    def _json_text(self, value: Any) -> str:
        try:
            return self._write_json(value).decode()
        except ValueError as error:
            raise unwritable(value, self._name, error) from None

    def _not_contents(self, value: Any) -> TypeError:
        """Return the error for content blocks, which only tools and prompts return."""
        block = (
            value if isinstance(value, Content) else next(element for element in value if isinstance(element, Content))
        )
        return TypeError(
            f"{self._name} returned {type_name(type(block))}. A resource returns a text, bytes, data as JSON, or "
            "funcmcp.content.Contents with a media type, such as Contents(blob=png, mime_type='image/png')."
        )

    def _whole_contents(self, uri: str, value: Contents) -> bytes:
        return encode(self._contents_of(uri, value))

    def _contents_of(self, uri: str, value: Contents) -> dict[str, Any]:
        contents: dict[str, Any] = {"uri": uri, **value.wire}
        default_type = _TEXT_TYPE if "text" in contents else _BINARY_TYPE
        contents.setdefault("mimeType", self._mime_type or default_type)
        if self._ui is not None:
            contents["_meta"] = {"ui": self._ui, **contents.get("_meta", {})}
        return contents


def _json_writer(annotation: Any, name: str) -> Callable[[Any], bytes]:
    """Return the function that writes values as JSON: as their annotation describes them, if it does."""
    annotation = awaited(annotation)
    members = [without_marks(member) for member in union_members(annotation)]
    parts = list(parts_of_type(annotation))
    if any(member in _UNTYPED for member in members) or Contents in parts or any(map(is_sdk_type, parts)):
        return _untyped_json
    writer = ResultWriter(annotation, name)
    writer.prepare()
    return writer.write


def _untyped_json(value: Any) -> bytes:
    try:
        return encode(value, binary="base64")
    except ValueError:
        return encode(jsonable(value))


def media_type_of(annotation: Any) -> str | None:
    """Return the media type of what a function returns, or None if its annotation does not decide it."""
    types: set[str | None] = set()
    for member in union_members(without_marks(awaited(annotation))):
        if member is not None and member is not type(None):  # None stands for "not found"
            types.add(_media_type(without_marks(member)))
    return types.pop() if len(types) == 1 else None


def _media_type(bare: Any) -> str | None:
    origin = get_origin(bare) or bare
    if hasattr(origin, "__total__"):  # a TypedDict, for which issubclass() raises TypeError
        return _JSON_TYPE
    if not _is_class(origin) or any(map(is_sdk_type, parts_of_type(bare))):
        return None
    if issubclass(origin, str):
        return _TEXT_TYPE
    if issubclass(origin, _BYTES):
        return _BINARY_TYPE
    if issubclass(origin, _LISTS):
        # Items may be Contents, which have media types of their own.
        may_be_contents = bare in _LISTS or not {Any, object, Contents}.isdisjoint(get_args(bare))
        return None if may_be_contents else _JSON_TYPE
    if issubclass(origin, Contents):
        return None
    if any(issubclass(kind, origin) for kind in (str, *_BYTES)):
        return None  # such as object: the value may be a text or bytes
    return _JSON_TYPE


def _is_class(origin: Any) -> bool:
    """Return whether an annotation is a class with instances of its own, and not Any, absent or a protocol."""
    if origin is Any or origin is EMPTY:
        return False
    return isinstance(origin, type) and not getattr(origin, "_is_protocol", False)
