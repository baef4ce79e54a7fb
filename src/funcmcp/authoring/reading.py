"""Running a resource's function: variables of the URI in, contents out."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from funcmcp.authoring.arguments import reader_of, text_parts_of
from funcmcp.authoring.completions import choices_of
from funcmcp.authoring.content import Contents, base64
from funcmcp.authoring.context import ResourceContext
from funcmcp.authoring.hints import without_marks
from funcmcp.protocol.codec import encode, encode_text
from funcmcp.protocol.errors import InvalidParams, ResourceNotFound, ToolError
from funcmcp.server.features import EncodedResult
from funcmcp.server.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp.authoring.arguments import Reader
    from funcmcp.authoring.calls import FunctionCall
    from funcmcp.authoring.pages import UIResource
    from funcmcp.protocol.uri_template import Values
    from funcmcp.server.context import Context

_LISTS = (list, tuple)
_BYTES = (bytes, bytearray, memoryview)


class Reading:
    """Reads one resource, or those of one template.

    Args:
        call: runs the function.
        uri: of the resource or the template.
        variables: the template's variables.
        mime_type: the media type that the author chose, if any.
        ui: what a page may do.
    """

    def __init__(
        self,
        call: FunctionCall,
        *,
        uri: str,
        variables: Sequence[str],
        mime_type: str | None,
        ui: UIResource | None,
    ) -> None:
        self._call = call
        self._uri = uri
        self._variables = variables
        self._mime_type = mime_type
        self._ui = ui
        self._read: Reader | None = None
        self._direct = False
        self._own_type: bytes | None = None
        self._end = b""
        self._joined: tuple[str, ...] = ()
        self._choices: dict[str, dict[str, Any]] = {}

    async def run(self, context: Context, uri: str, values: Values) -> EncodedResult:
        """Read a URI: a `ResourceHandler`."""
        read, call = self._read or self._prepare(), self._call
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

    def _prepare(self) -> Reader:
        plan, name = self._call.plan, self._call.name
        unknown = [parameter.name for parameter in plan.arguments if parameter.name not in self._variables]
        if unknown:
            raise RegistrationError(f"{name} has a parameter {unknown[0]!r}, which is no variable of {self._uri}.")
        exploded = [parameter for parameter in plan.arguments if f"{{{parameter.name}*}}" in self._uri]
        self._joined = tuple(p.name for p in exploded if without_marks(p.annotation) is str)
        choices = {p.name: choices_of(p.annotation) for p in plan.arguments if p not in exploded}
        self._choices = {parameter: found for parameter, found in choices.items() if found}
        self._direct = self._call.is_direct
        self._own_type = None if self._mime_type is None else encode(self._mime_type)
        self._end = b"" if self._ui is None else b',"_meta":' + encode({"ui": self._ui.wire})
        self._read = reader_of(text_parts_of(plan.arguments, name), lax=True)
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
        if isinstance(value, _LISTS) and value and all(isinstance(item, Contents) for item in value):
            return EncodedResult(b'{"contents":[%b]}' % b",".join(self._contents(uri, item) for item in value))
        return EncodedResult(b'{"contents":[%b]}' % self._contents(uri, value))

    def _contents(self, uri: str, value: Any) -> bytes:
        if isinstance(value, Contents):
            return self._chosen(uri, value)
        if isinstance(value, str):
            mime_type, member, text = b'"text/plain"', b"text", value
        elif isinstance(value, _BYTES):
            mime_type, member, text = b'"application/octet-stream"', b"blob", base64(bytes(value))
        else:
            mime_type, member, text = b'"application/json"', b"text", encode(value, binary="base64").decode()
        written = (encode_text(uri), self._own_type or mime_type, member, encode_text(text), self._end)
        return b'{"uri":%b,"mimeType":%b,"%b":%b%b}' % written

    def _chosen(self, uri: str, value: Contents) -> bytes:
        contents: dict[str, Any] = {"uri": uri, **value.wire}
        if self._mime_type is not None:
            contents.setdefault("mimeType", self._mime_type)
        if self._ui is not None:
            contents["_meta"] = {"ui": self._ui.wire, **contents.get("_meta", {})}
        return encode(contents)
