"""Calls of a prompt's function: texts in, a ``GetPromptResult`` out.

A prompt's arguments are texts on the wire. Where a type has choices, the text of a choice stands for its value. Where
every value of a type is an object or an array, the text is JSON. An optional argument that is an empty text counts as
absent, because forms send fields that the user left empty, unless its type takes an empty text.

Source: 2026-07-28 "server/prompts".
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._authoring.calling.arguments import json_texts_of, optional_of, reader_of
from funcmcp._authoring.calling.function_call import Always, CallKind
from funcmcp._authoring.calling.unknown_arguments import KnownArguments
from funcmcp._authoring.results.prompt_results import description_prefix, prompt_result
from funcmcp._authoring.results.result_writer import text_conversion
from funcmcp._authoring.signatures.annotations import union_members, without_marks
from funcmcp._authoring.signatures.choices import choices_of
from funcmcp._authoring.signatures.signature import EMPTY
from funcmcp._protocol.errors import InvalidParams, ToolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from funcmcp._authoring.calling.function_call import FunctionCall
    from funcmcp._authoring.calling.unknown_arguments import UnknownArguments
    from funcmcp._server.catalog.features import EncodedResult

    PromptCallResult: TypeAlias = "dict[str, Any] | EncodedResult"
    PromptCall: TypeAlias = "FunctionCall[PromptSettings, PromptCallResult, dict[str, str]]"

_TEXT_TYPES = frozenset({EMPTY, Any, object, str})


class PromptSettings(NamedTuple):
    """What the author of a prompt chose.

    Attributes:
        description: Returns the prompt's description, which its results repeat.
        unknown: What happens to unknown arguments.
    """

    description: Callable[[], str | None]
    unknown: UnknownArguments


def _new_reader(call: PromptCall) -> Callable[[dict[str, str]], dict[str, Any]]:
    known = KnownArguments(frozenset(parameter.name for parameter in call.plan.arguments), call.settings.unknown)
    values_of = _value_reader(call)
    validate = reader_of(call.parts, lax=True, schema=call.input_schema)

    def read_values(arguments: dict[str, str]) -> dict[str, Any]:
        return validate(arguments if values_of is None else values_of(arguments))

    def read(arguments: dict[str, str]) -> dict[str, Any]:
        try:
            if not known.names.issuperset(arguments):
                arguments = known.known_in(arguments, read_values)
            return read_values(arguments)
        except ToolError as error:
            raise InvalidParams(str(error)) from None

    return read


def _value_reader(call: PromptCall) -> Callable[[dict[str, str]], dict[str, Any]] | None:
    """Return the function that reads the texts that stand for something else; None if all are just texts."""
    readers: dict[str, Callable[[str], Any]] = {}
    absent_if_empty: set[str] = set()
    optional = optional_of(call.parts)
    examples = json_examples(call)
    for name, may_be_text in json_texts_of(call.parts).items():
        readers[name] = functools.partial(_json_value, name, examples[name], may_be_text=may_be_text)
    for parameter in call.plan.arguments:
        name = parameter.name
        if name in optional and not _takes_empty_text(parameter.annotation):
            absent_if_empty.add(name)
    if not readers and not absent_if_empty:
        return None

    def values_of(arguments: dict[str, str]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, text in arguments.items():
            if text or name not in absent_if_empty:
                values[name] = readers[name](text) if name in readers else text
        return values

    return values_of


def _new_renderer(call: PromptCall) -> Always[PromptCallResult]:
    description = call.settings.description()
    render: Callable[[Any], PromptCallResult] = prompt_result
    if description:
        render = functools.partial(prompt_result, description=description, prefix=description_prefix(description))
    convert = text_conversion(call.signature.returns(), call.name)
    if convert is None:
        return Always(render)
    return Always(lambda value: render(convert(value)))


def _context_members(arguments: dict[str, str]) -> dict[str, Any]:
    return {"arguments": arguments}


PROMPT_CALL = CallKind(_new_reader, _new_renderer, context_members=_context_members)


def _json_value(name: str, example: str, text: str, *, may_be_text: bool) -> Any:
    from pydantic_core import from_json  # noqa: PLC0415 - loaded with the codec

    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError as error:
        if may_be_text:
            return text
        reason = f" ({error})" if text.lstrip()[:1] in {"{", "["} else ""
        raise ToolError(f"{name}: must be JSON such as {example}{reason}") from None


def _takes_empty_text(annotation: Any) -> bool:
    """Return whether an empty text is a value of a type, and not just a field of a form that was left empty."""
    if "" in choices_of(annotation):
        return True
    for member in union_members(without_marks(annotation)):
        bare = without_marks(member)
        if choices_of(bare):
            continue
        if getattr(bare, "__pydantic_root_model__", False):
            if _takes_empty_text(bare.model_fields["root"].annotation):
                return True
            continue
        origin = getattr(bare, "__origin__", bare)
        if not isinstance(origin, type) or origin in _TEXT_TYPES or issubclass(origin, str | bytes):
            return True
    return False


def json_examples(call: PromptCall) -> dict[str, str]:
    """Return an example of JSON for each argument whose text must be JSON."""
    properties = call.input_schema()["properties"]
    return {name: _json_example(properties[name]) for name in json_texts_of(call.parts)}


def _json_example(schema: dict[str, Any]) -> str:
    """Return an example of JSON for the schema of an array or an object."""
    for member in schema.get("anyOf", ()):
        if member.get("type") != "null":
            return _json_example(member)
    if schema.get("type") != "array":
        return '{"name": "value"}'
    kind = schema["items"].get("type")
    if kind in {"integer", "number"}:
        return "[1, 2]"
    return '[{"name": "value"}]' if kind == "object" else '["one", "two"]'
