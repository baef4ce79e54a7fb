"""Running a resource's function: variables of the URI in, contents out."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from funcmcp.authoring.arguments import reader_of, text_parts_of
from funcmcp.authoring.completions import choices_of
from funcmcp.authoring.content import Contents, base64
from funcmcp.authoring.context import ResourceContext
from funcmcp.authoring.hints import without_marks
from funcmcp.protocol.codec import encode
from funcmcp.protocol.errors import InvalidParams, ResourceNotFound, ToolError
from funcmcp.server.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp.authoring.arguments import Reader
    from funcmcp.authoring.calls import FunctionCall
    from funcmcp.authoring.pages import UIResource
    from funcmcp.protocol.uri_template import Values
    from funcmcp.server.context import Context


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
        self._joined: tuple[str, ...] = ()
        self._choices: dict[str, dict[str, Any]] = {}

    async def run(self, context: Context, uri: str, values: Values) -> dict[str, Any]:
        """Read a URI: a `ResourceHandler`."""
        read = self._read or self._prepare()
        given: dict[str, Any] = {**values}
        for name, choices in self._choices.items():
            if name in given:
                given[name] = choices.get(given[name], given[name])
        for name in self._joined:
            given[name] = "/".join(given[name])
        try:
            kwargs = read(given)
        except ToolError as error:
            raise InvalidParams(f"The URI does not fit: {error}", {"uri": uri}) from None
        make = functools.partial(ResourceContext, context, uri)
        render = functools.partial(self._render, uri)
        if self._call.is_direct:
            return render(await self._call.call(self._call.function, kwargs))
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
        self._read = reader_of(text_parts_of(plan.arguments, name), lax=True)
        return self._read

    def _render(self, uri: str, value: Any) -> dict[str, Any]:
        """Return what a function returned as the contents of a resource."""
        if value is None:
            raise ResourceNotFound(uri)
        several = isinstance(value, list | tuple) and bool(value) and all(isinstance(item, Contents) for item in value)
        result = {"contents": [self._contents(uri, item) for item in (value if several else [value])]}
        encode(result)  # refuses what JSON can't say
        return result

    def _contents(self, uri: str, value: Any) -> dict[str, Any]:
        if isinstance(value, Contents):
            contents: dict[str, Any] = {"uri": uri, **value.wire}
            if self._mime_type is not None:
                contents.setdefault("mimeType", self._mime_type)
        elif isinstance(value, str):
            contents = {"uri": uri, "mimeType": self._mime_type or "text/plain", "text": value}
        elif isinstance(value, bytes | bytearray | memoryview):
            blob = base64(bytes(value))
            contents = {"uri": uri, "mimeType": self._mime_type or "application/octet-stream", "blob": blob}
        else:
            contents = {"uri": uri, "mimeType": self._mime_type or "application/json", "text": _json(value)}
        if self._ui is not None:
            contents["_meta"] = {"ui": self._ui.wire, **contents.get("_meta", {})}
        return contents


def _json(value: Any) -> str:
    from pydantic_core import to_jsonable_python  # noqa: PLC0415 - loaded with the codec

    jsonable = to_jsonable_python(value, by_alias=True, bytes_mode="base64", inf_nan_mode="constants")
    return encode(jsonable).decode()
