"""Binding expressions: ``snippets/{mcptoolargs.name}.json``, ``%SETTING%``, ``{rand-guid}``, ``{DateTime}``."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp.functions_host.invocation import Trigger

_SETTING = re.compile(r"%([^%]+)%")
_EXPRESSION = re.compile(r"\{([^{}]+)\}")


class ExpressionError(ValueError):
    """An expression has no value."""


def with_settings(text: str, settings: Mapping[str, str]) -> str:
    """Return a text with the values of its app settings; raise ExpressionError if one is not set."""

    def value_of(match: re.Match[str]) -> str:
        value = settings.get(match[1])
        if value is None:
            raise ExpressionError(f"The app setting {match[1]!r} is not set. Put it into local.settings.json.")
        return value

    return _SETTING.sub(value_of, text)


def resolve(text: str, trigger: Trigger) -> str:
    """Return a text with the values of its expressions; raise ExpressionError if one has no value."""
    return _EXPRESSION.sub(lambda match: _value_of(match[1].strip(), trigger), text)


def _value_of(expression: str, trigger: Trigger) -> str:
    name, _, member = expression.partition(".")
    folded = name.lower()
    if folded == "rand-guid":
        return str(uuid.uuid4())
    if folded == "datetime":
        return datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    if member:
        group = trigger.groups.get(folded)
        if group is not None:
            for key, value in group.items():
                if key.lower() == member.lower():
                    return value
    elif folded in trigger.texts:
        return trigger.texts[folded]
    raise ExpressionError(f"The expression {{{expression}}} has no value in this call.")
