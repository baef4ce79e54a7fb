"""The schemas of a tool as the official SDK's `MCPServer` publishes them: those of pydantic, with titles.

How it works: the arguments become the fields of a model, and the result becomes a model of its own. A result whose type
is not an object is a member ``result`` of one. Content (blocks, images, sounds) is for the model and has no schema.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, WithJsonSchema, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, SchemaError, ValidationError, from_json, to_json

from funcmcp._authoring.results.content import Content, Image, ToolResult
from funcmcp._authoring.results.pictures import is_picture_type
from funcmcp._authoring.results.result_writer import jsonable
from funcmcp._authoring.results.sdk_results import converted, is_sdk_type
from funcmcp._authoring.results.tool_results import CompleteResult
from funcmcp._authoring.schemas.python_values import is_of_library, python_value
from funcmcp._authoring.signatures.partials import signature_of
from funcmcp._authoring.signatures.signature import Signature, function_name
from funcmcp._compat.errors import InvalidSignature
from funcmcp._compat.input_required import is_input_required_type
from funcmcp._compat.input_rounds import raise_for_input
from funcmcp._compat.output_schemas import with_data_types
from funcmcp._compat.typed_dicts import readable
from funcmcp._protocol.headers import mirrored_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from pydantic.json_schema import JsonSchemaWarningKind

    from funcmcp._protocol.headers import MirroredParameter

HEADER = "x-mcp-header"
"""The member of an argument's schema that names the header in which clients repeat it."""

_LOCAL = "#/$defs/"
_MODELS = ConfigDict(arbitrary_types_allowed=True)
_PRIMITIVES = frozenset({str, int, float, bool, bytes, type(None)})
_CONTENT_CLASSES = frozenset({"AudioContent", "EmbeddedResource", "ImageContent", "ResourceLink", "TextContent"})
_HELPERS = frozenset({"Audio", "Image"})


class _StrictSchema(GenerateJsonSchema):
    """Creates schemas, and raises an exception for what a schema can't say."""

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        raise ValueError(f"{kind}: {detail}")


def arguments_schema(function: Callable[..., Any], hidden: Collection[str]) -> dict[str, Any] | None:
    """Return the schema of a function's arguments; None if pydantic has none for one of them.

    Args:
        function: The function.
        hidden: Parameters that are not arguments.
    """
    types = Signature(function).try_types()
    if types is None:
        return None
    fields: dict[str, Any] = {}
    for parameter in signature_of(function).parameters.values():
        if parameter.name in hidden:
            continue
        name, hint = parameter.name, types.hints.get(parameter.name, Any)
        marks: list[Any] = []
        if parameter.name not in types.hints:
            marks.append(WithJsonSchema({"title": name, "type": "string"}))
        if callable(getattr(BaseModel, name, None)):  # pydantic reserves the name of a method
            marks.append(Field(alias=name))
            name = f"field_{name}"
        if marks:
            hint = Annotated[(hint, *marks)]
        fields[name] = (hint, ... if parameter.default is parameter.empty else parameter.default)
    try:
        model: type[BaseModel] = create_model(f"{function_name(function)}Arguments", __config__=_MODELS, **fields)
        return model.model_json_schema(by_alias=True)
    except (PydanticUserError, SchemaError, TypeError, ValueError, NameError):
        return None


def mirrored_arguments(tool: str, schema: Mapping[str, Any]) -> tuple[MirroredParameter, ...]:
    """Return the arguments that clients repeat in headers.

    Raises:
        InvalidSignature: A mark is not on an argument with a simple type, is not a token, or is repeated.
    """
    try:
        return mirrored_parameters(schema)
    except ValueError as error:
        raise InvalidSignature(f"Tool {tool!r} has an invalid {HEADER} annotation: {error}") from None


@dataclass(frozen=True, slots=True)
class ResultForm:
    """How a tool's results are written.

    Attributes:
        schema: The output schema; None for no structured content.
        adapter: Checks and writes the structured content; None without a schema.
        is_wrapped: Whether the value is the member ``result`` of the structured content.
    """

    schema: dict[str, Any] | None = None
    adapter: TypeAdapter[Any] | None = None
    is_wrapped: bool = False

    def convert(self, value: Any) -> Any:
        """Return a value as a complete result.

        Raises:
            InputRequiredError: The value is an ``InputRequiredResult``.
            ValidationError: The value does not match the annotation of the function.
        """
        raise_for_input(value)
        if is_of_library(type(value)):
            with suppress(PydanticSerializationError):  # such as two columns of one name: it is a text, as in the SDK
                value = python_value(value)
        complete = converted(value)
        if isinstance(complete, ToolResult):
            if self.adapter is not None and not complete.is_error:
                self.adapter.validate_python(complete.structured_content)
            return CompleteResult(_wire(complete))
        wire: dict[str, Any] = {"content": list(_blocks(value))}
        if self.adapter is not None:
            wire["structuredContent"] = self._structured(self.adapter, value)
        return CompleteResult(wire)

    def _structured(self, adapter: TypeAdapter[Any], value: Any) -> Any:
        wrapped = {"result": value} if self.is_wrapped else value
        checked = adapter.validate_python(wrapped, by_alias=True, by_name=True)
        if isinstance(checked, BaseModel):
            return from_json(checked.model_dump_json(by_alias=True))  # JSON, because it has null for NaN
        return from_json(adapter.dump_json(checked, by_alias=True))


def _wire(result: ToolResult) -> dict[str, Any]:
    """Return a complete result in JSON form."""
    wire: dict[str, Any] = {"content": [block for item in result.content for block in _blocks(item)]}
    if result.structured_content is not None:
        wire["structuredContent"] = jsonable(result.structured_content)
    if result.is_error:
        wire["isError"] = True
    if result.meta is not None:
        wire["_meta"] = jsonable(dict(result.meta))
    return wire


def _blocks(value: Any) -> Iterator[dict[str, Any]]:
    """Yield what the model reads of a value: content as it is, texts, and the JSON of other values."""
    if value is None:
        return
    block = converted(value)
    if isinstance(block, Content):
        yield dict(block.block)
    elif isinstance(block, str):
        yield {"type": "text", "text": block}
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _blocks(item)
    else:
        yield {"type": "text", "text": to_json(value, fallback=str, indent=2).decode()}


def result_form(function: Callable[..., Any], structured: bool | None) -> ResultForm:  # noqa: FBT001 - the author's option
    """Return how the results of a tool are written.

    Args:
        function: The function of the tool.
        structured: Whether the author wants structured content; None if the annotation decides.

    Raises:
        InvalidSignature: The author wants structured content, and the annotation has none.
    """
    name = function_name(function)
    signature = Signature(function)
    if structured is False:
        return ResultForm()
    hints = signature.try_hints()
    if "return" not in hints:
        if structured:
            raise InvalidSignature(f"Function {name}: return annotation required for structured output")
        return ResultForm()
    hint = with_data_types(_data_of(hints["return"], name))
    if hint is _NOTHING or (structured is None and _is_content(_bare(hint))):
        return ResultForm()
    form = _form_of(hint, name)
    if form is None and structured:
        raise InvalidSignature(f"Function {name}: return type {hint} is not serializable for structured output")
    return form or ResultForm()


_NOTHING = object()
"""Stands for an annotation without data."""


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _data_of(hint: Any, name: str) -> Any:
    """Return the part of a return annotation that is data: without ``InputRequiredResult`` and ``CallToolResult``.

    Raises:
        InvalidSignature: A ``CallToolResult`` is in a union.
    """
    bare = _bare(hint)
    if get_origin(bare) in {Union, UnionType}:
        members = [member for member in get_args(bare) if not is_input_required_type(member)]
        if len(members) < len(get_args(bare)):
            hint = Union[tuple(members)] if members else _NOTHING  # noqa: UP007 - the members are in a list
            bare = _bare(hint)
        if len(members) > 1 and any(_is_call_result(member) for member in members):
            raise InvalidSignature(
                f"Function {name}: CallToolResult cannot be used in Union or Optional types. To return empty results, "
                "use: CallToolResult(content=[])"
            )
    if is_input_required_type(bare):
        return _NOTHING
    if not _is_call_result(bare):
        return hint
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    if not marks:
        return _NOTHING
    return Annotated[(marks[0], *marks[1:])] if marks[1:] else marks[0]


def _is_call_result(kind: Any) -> bool:
    if not isinstance(kind, type):
        return False
    return issubclass(kind, ToolResult) or (is_sdk_type(kind) and kind.__name__ == "CallToolResult")


def _is_content(hint: Any) -> bool:
    """Return whether a return annotation is content, alone or in a list, a tuple or a union."""
    from collections.abc import Sequence  # noqa: PLC0415 - compared at run time

    origin = get_origin(hint)
    if origin is None:
        return isinstance(hint, type) and (
            issubclass(hint, Content | Image) or is_picture_type(hint) or _is_block_class(hint)
        )
    if origin is Annotated:
        return _is_content(get_args(hint)[0])
    if origin in {Union, UnionType, list, tuple, Sequence}:
        return any(map(_is_content, get_args(hint)))
    return False


def _is_block_class(kind: type) -> bool:
    return is_sdk_type(kind) and any(base.__name__ in _CONTENT_CLASSES | _HELPERS for base in kind.__mro__)


def _form_of(hint: Any, name: str) -> ResultForm | None:
    """Return the form of results of a type; None if pydantic has no schema for it."""
    try:
        model, is_wrapped = _model_of(hint, name)
        if model is None:
            return None
        adapter: TypeAdapter[Any] = TypeAdapter(readable(model))
        schema = _with_inlined_root(adapter.json_schema(schema_generator=_StrictSchema))
    except (PydanticUserError, SchemaError, TypeError, ValueError, NameError, ValidationError):
        return None
    return ResultForm(schema, adapter, is_wrapped)


def _model_of(hint: Any, name: str) -> tuple[Any, bool]:
    """Return the type of the structured content, None for none, and whether it wraps the value."""
    bare = _bare(hint)
    if get_origin(bare) is dict:
        arguments = get_args(bare)
        if len(arguments) == 2 and arguments[0] is str:  # noqa: PLR2004 - keys and values
            return Annotated[bare, Field(title=f"{name}DictOutput")], False
        return _wrapped(hint, name), True
    is_marked = bare is Any and hint is not Any  # data of another library
    if is_marked or not isinstance(bare, type) or get_origin(bare) is not None or bare in _PRIMITIVES:
        return _wrapped(hint, name), True
    if issubclass(bare, BaseModel) or hasattr(bare, "__required_keys__"):
        return bare, False
    members = get_type_hints(bare)
    return (_class_model(bare, members) if members else None), False


def _wrapped(hint: Any, name: str) -> type[BaseModel]:
    return create_model(f"{name}Output", result=(readable(hint), ...))


def _class_model(kind: type, members: Mapping[str, Any]) -> type[BaseModel]:
    """Return a model with the attributes of a class."""
    fields: dict[str, Any] = {
        name: (member, getattr(kind, name, ...)) for name, member in members.items() if not name.startswith("_")
    }
    return create_model(kind.__name__, __config__=ConfigDict(from_attributes=True), **fields)


def _with_inlined_root(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema whose root is an object, and not a reference to one."""
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith(_LOCAL):
        return schema
    siblings = {name: member for name, member in schema.items() if name != "$ref"}
    return {**schema["$defs"][reference.removeprefix(_LOCAL)], **siblings}
