"""Arguments of tools whose schema the author wrote: checked by that schema.

References are resolved inside the schema only: nothing is ever fetched. Patterns run on a linear engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema_rs

from funcmcp.protocol.errors import ToolError
from funcmcp.server.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_LINES = 20


class ExplicitSchema:
    """A JSON schema that arguments are checked by.

    Args:
        schema: the schema.

    Raises:
        RegistrationError: it is no valid schema, or refers to something outside itself.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        try:
            self._validator = jsonschema_rs.Draft202012Validator(
                dict(schema), retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions()
            )
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            raise RegistrationError(f"The input schema is not valid: {str(error).splitlines()[0]}") from error

    def check(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments; raise ToolError with one line for each fault."""
        if self._validator.is_valid(arguments):
            return arguments
        lines = [_line(error) for error in self._validator.iter_errors(arguments)]
        more = [f"and {len(lines) - _MAX_LINES} more"] if len(lines) > _MAX_LINES else []
        raise ToolError("\n".join([*lines[:_MAX_LINES], *more]))


def _refuse(uri: str) -> Any:
    raise ValueError(f"References to other documents are not resolved: {uri}")


def _line(error: Any) -> str:
    """Say what rule of the schema is broken, and where; never what the client sent."""
    path = ""
    for step in error.instance_path:
        path += f"[{step}]" if isinstance(step, int) else f".{str(step)[:64]}" if path else str(step)[:64]
    rule = "/".join(str(step) for step in error.schema_path)
    return f"{path or 'arguments'}: does not meet the schema's rule {rule!r}"
