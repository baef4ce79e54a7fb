"""Functions of prompts as FastMCP takes them: how texts become arguments, and how arguments are described."""

from __future__ import annotations

import json
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, get_origin

from funcmcp._authoring.signatures.annotations import description_mark, union_members, without_marks
from funcmcp._authoring.signatures.docstring import parameter_descriptions
from funcmcp._authoring.signatures.partials import is_async, signature_of
from funcmcp._authoring.signatures.signature import Signature
from funcmcp._compat.context import is_context
from funcmcp._compat.dependencies import dependency_of
from funcmcp._compat.errors import PromptError
from funcmcp._compat.functions import set_signature
from funcmcp._protocol.errors import InvalidParams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_READ_BY_FUNCMCP = (str, int, float, bool)


def converting(function: Callable[..., Any]) -> Any:
    """Return a function that gets the texts of its arguments as their types, where FastMCP reads them in its own way.

    FastMCP reads a text as pydantic does, or as JSON. Arguments that are not texts are passed on.
    """
    hints = Signature(function).try_hints()
    types = {name: hint for name, hint in hints.items() if _is_converted(function, name, hint)}
    if not types:
        return function

    def converted(arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: _converted(name, value, types[name]) if name in types and isinstance(value, str) else value
            for name, value in arguments.items()
        }

    def call(**arguments: Any) -> Any:
        return function(**converted(arguments))

    async def call_async(**arguments: Any) -> Any:
        return await function(**converted(arguments))

    wrapper = call_async if is_async(function) else call
    set_signature(wrapper, function, {**hints, **dict.fromkeys(types, Any)}, ())
    return wrapper


def _is_converted(function: Callable[..., Any], name: str, hint: Any) -> bool:
    """Return whether FastMCP reads an argument of a type in its own way."""
    parameter = signature_of(function).parameters.get(name)
    if parameter is None or is_context(hint) or dependency_of(name, hint, parameter.default) is not None:
        return False
    members = set(union_members(hint))
    if len(members) > 1:
        return not members <= {str, type(None)}
    bare = without_marks(hint)
    is_enum = isinstance(bare, type) and issubclass(bare, Enum)
    return bare not in {*_READ_BY_FUNCMCP, Any} and get_origin(bare) is not Literal and not is_enum


def _converted(name: str, text: str, hint: Any) -> Any:
    """Return the value of a text; raise PromptError if it has none."""
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - few prompts have such arguments

    adapter = TypeAdapter(hint)
    try:
        value = adapter.validate_python(text)
        if isinstance(value, str):
            return value
    except ValidationError:
        value = None
    try:
        return adapter.validate_json(text)
    except ValidationError:
        if value is not None:
            return value
    raise PromptError(f"Could not convert argument {name!r} with value {text!r} to expected type {hint}.")


def described_arguments(function: Any, arguments: Any) -> list[dict[str, Any]]:
    """Return the arguments in a definition with the descriptions that FastMCP gives them.

    Args:
        function: The function.
        arguments: The arguments in the definition.
    """
    parameters = signature_of(function).parameters
    hints = Signature(function).try_hints()
    texts = parameter_descriptions(function.__call__ if _is_object(function) else function)
    described = []
    for argument in arguments:
        name = argument["name"]
        hint = hints.get(name, str)
        text = description_mark(hint) or _description_of_default(parameters[name].default) or texts.get(name)
        note = None if hint is str else _schema_note(hint)
        parts = [part for part in (text, note) if part]
        members = {member: value for member, value in argument.items() if member != "description"}
        described.append({**members, "description": "\n\n".join(parts)} if parts else members)
    return described


def _is_object(function: Any) -> bool:
    return not hasattr(function, "__code__") and not hasattr(function, "func")


def _description_of_default(default: Any) -> str | None:
    description = getattr(default, "description", None)
    return description if isinstance(description, str) else None


def _schema_note(hint: Any) -> str | None:
    """Return the sentence about the JSON schema of an argument's type; None if it has none."""
    from pydantic import TypeAdapter  # noqa: PLC0415 - few prompts have such arguments
    from pydantic.errors import PydanticUserError  # noqa: PLC0415 - as above

    try:
        schema = json.dumps(TypeAdapter(hint).json_schema(), separators=(",", ":"))
    except (PydanticUserError, ValueError, TypeError):
        return None
    return f"Provide a value matching the following JSON schema: {schema}. Encode non-string values as JSON."


def with_required_arguments(component: Any, handler: Callable[..., Any]) -> Callable[..., Any]:
    """Return the handler of a prompt that names required arguments which are missing, as FastMCP does.

    Args:
        component: The prompt.
        handler: Its handler.
    """

    async def handle(context: Any, arguments: Mapping[str, str]) -> Any:
        missing = component.missing_arguments(arguments)
        if missing:
            raise InvalidParams(f"Missing required arguments: {missing}")
        return await handler(context, arguments)

    return handle
