"""Results that FastMCP and the official SDK take, and that funcmcp's own API reads in another way.

How it works: `ResultConversion` looks at a return annotation once, and then at each value. A value that the annotation
does not describe, such as a ToolResult of a function that is annotated to return a text, leaves the function as the
exception `ReturnedResult`, and the tool's handler writes it without the annotation.
"""

from __future__ import annotations

import sys
from enum import Enum
from typing import Annotated, Any, ClassVar, NotRequired, get_args, get_origin, get_type_hints

from funcmcp._authoring.results.content import Content, Message, ToolResult
from funcmcp._authoring.results.sdk_results import converted, is_sdk_type
from funcmcp._authoring.results.tool_results import is_open_list
from funcmcp._authoring.schemas.python_values import is_of_library
from funcmcp._authoring.signatures.annotations import parts_of_type, without_marks
from funcmcp._compat.input_rounds import raise_for_input
from funcmcp._compat.typed_dicts import readable, typed_dict


def schema_of_annotated_result(hint: Any) -> dict[str, Any] | None:
    """Return the output schema of ``Annotated[CallToolResult, Forecast]``: that of the second type; None otherwise."""
    if get_origin(hint) is not Annotated:
        return None
    result, model = get_args(hint)[:2]
    is_result = isinstance(result, type) and (is_sdk_type(result) or issubclass(result, ToolResult))
    if not is_result or not isinstance(model, type):
        return None
    from pydantic import TypeAdapter  # noqa: PLC0415 - few tools have such a result

    return TypeAdapter(model).json_schema()


class ReturnedResult(Exception):
    """A result that the return annotation of a function does not describe.

    Args:
        result: A ToolResult, or a ``CallToolResult`` of the official SDK.
    """

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result


class ResultConversion:
    """Converts what a tool's function returns.

    Args:
        hint: The return annotation; None if there is none.

    Attributes:
        hint: The annotation that funcmcp reads; None for no output schema.
        is_needed: Whether values have to be looked at.
    """

    def __init__(self, hint: Any) -> None:
        self.hint = readable(hint)
        self._members: tuple[str, ...] | None = None
        describes_content = any(map(_is_content, parts_of_type(hint)))
        is_decided_by_value = hint is None or hint is type(None) or is_open_list(without_marks(hint))
        self.is_needed = not is_decided_by_value and not describes_content
        if self.is_needed and _is_plain_class(hint):
            types = {name: kind for name, kind in get_type_hints(hint).items() if not _is_class_variable(kind)}
            self._members = tuple(types)
            members = {name: NotRequired[kind] if hasattr(hint, name) else kind for name, kind in types.items()}
            self.hint = typed_dict(hint.__name__, members, hint.__doc__) if members else None

    def convert(self, value: Any) -> Any:
        """Return the value for the annotation; raise ReturnedResult if the annotation does not describe it."""
        if isinstance(value, ToolResult):
            raise ReturnedResult(value)
        if is_sdk_type(type(value)) and isinstance(getattr(value, "content", None), list):
            raise ReturnedResult(value)
        if isinstance(value, list | tuple) and any(_is_content(type(member)) for member in value):
            blocks = [converted(member) for member in value]
            members = [member.block if isinstance(member, Content) else member for member in blocks]
            raise ReturnedResult(ToolResult(blocks, structured_content={"result": members}))
        if self._members is None or value is None:
            return value
        if not self._members:
            return str(value)
        return {name: getattr(value, name) for name in self._members if hasattr(value, name)}


def messages_of(value: Any) -> Any:
    """Return what a prompt's function returned, with messages in the place of dicts with a role.

    Raises:
        InputRequiredError: It returned an ``InputRequiredResult``.
    """
    raise_for_input(value)
    if isinstance(value, list | tuple):
        return [_message(message) for message in value]
    return _message(value)


def _message(message: Any) -> Any:
    if not isinstance(message, dict) or not {"role", "content"} <= message.keys():
        return message
    content = message["content"]
    if isinstance(content, dict):
        block = Content()
        block.block = content
        content = block
    return Message(content, role=message["role"])


def _is_content(kind: Any) -> bool:
    return isinstance(kind, type) and (issubclass(kind, Content | ToolResult) or is_sdk_type(kind))


def _is_class_variable(hint: Any) -> bool:
    return hint is ClassVar or get_origin(hint) is ClassVar


def _is_plain_class(hint: Any) -> bool:
    """Return whether an annotation is a class of the author that pydantic can't read."""
    if not isinstance(hint, type) or get_origin(hint) is not None or issubclass(hint, Enum):
        return False
    if is_of_library(hint):
        return False
    is_standard = hint.__module__.partition(".")[0] in sys.stdlib_module_names and hint.__module__ != "__main__"
    is_readable = any(
        hasattr(hint, name)
        for name in ("__get_pydantic_core_schema__", "__dataclass_fields__", "_fields", "__required_keys__")
    )
    return not is_standard and not is_readable and hint.__mro__[1:] == (object,)
