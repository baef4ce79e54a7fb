"""Binding expressions: ``snippets/{mcptoolargs.name}.json``, ``%SETTING%``, ``{rand-guid:N}``, ``{datetime:yyyy-MM}``.

How it works: `Template` parses a text once. `Template.check` compares the names in it with what a trigger has, before
the first call; `Template.value` writes the text for one call. As in Azure, names are compared without case, but for
arguments of tools and prompts, and the value of an object is empty.

Source: azure-webjobs-sdk, BindingTemplateParser, BindingTemplateToken, BindingParameterResolver and SystemBindingData;
azure-functions-host, `Utility.ApplyBindingData`, which adds the members of the trigger's JSON.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.azure.triggers.binding_json import URI_VARIABLE
from funcmcp_host.bindings import PromptTrigger, ToolTrigger
from funcmcp_host.dotnet_formats import date_text, guid_text, number_text
from funcmcp_host.schemas import tool_definition

if TYPE_CHECKING:
    from funcmcp_host.bindings import ResourceTrigger
    from funcmcp_host.invocation import Trigger

_SETTING = re.compile(r"%([^%]+)%")
_TOKEN = re.compile(r"(?P<escape>\{\{|\}\})|\{(?P<expression>[^{}]*)\}|(?P<literal>[^{}]+)|(?P<unbalanced>[{}])")
_IDENTIFIER = re.compile(r"[^\W\d][\w.\-]*")
_DEFAULT_DATE = "yyyy-MM-ddTHH-mm-ssK"
_SYSTEM = "sys"
_RANDOM = "rand-guid"
_DATE = "datetime"


class ExpressionError(ValueError):
    """An expression is not valid, or has no value."""


@dataclass(frozen=True, slots=True)
class TriggerNames:
    """What expressions beside a trigger can name.

    Attributes:
        names: The names, in lower case.
        group: The name of the object with the arguments, such as "mcptoolargs"; None if there are no arguments.
        arguments: The names of the arguments, as the function declares them.
        constant: The name whose value is the same in each call, such as "name", which is the name of the tool.
    """

    names: frozenset[str]
    group: str | None = None
    arguments: frozenset[str] = field(default_factory=frozenset)
    constant: str | None = None


@dataclass(frozen=True, slots=True)
class _Expression:
    """An expression without its braces.

    Attributes:
        parts: The names between its dots.
        text_format: What follows the colon; empty if nothing does.
    """

    parts: tuple[str, ...]
    text_format: str

    @property
    def text(self) -> str:
        return ".".join(self.parts)


def names_of(trigger: ToolTrigger | ResourceTrigger | PromptTrigger) -> TriggerNames:
    """Return what expressions in other bindings can name, beside a trigger."""
    common = {trigger.parameter.lower(), "clientinfo", "mcpsessionid", "sessionid", "transport"}
    if isinstance(trigger, ToolTrigger):
        names = common | {"arguments", "mcptoolargs", "mcptoolcontext", "name"}
        return TriggerNames(
            frozenset(names),
            "mcptoolargs",
            frozenset(tool_definition(trigger)["inputSchema"].get("properties", ())),
            "name",
        )
    if isinstance(trigger, PromptTrigger):
        names = common | {"arguments", "mcppromptargs", "mcppromptcontext", "name"}
        arguments = frozenset(argument["name"] for argument in trigger.arguments)
        return TriggerNames(frozenset(names), "mcppromptargs", arguments, "name")
    variables = {name.lower() for name in URI_VARIABLE.findall(trigger.uri)}
    return TriggerNames(frozenset(common | variables | {"mcpresourcecontext", "mcpresourceuri", "uri"}))


def with_settings(text: str, settings: Mapping[str, str]) -> str:
    """Return a text with the values of its app settings; raise ExpressionError if one is not set."""

    def value_of(match: re.Match[str]) -> str:
        value = settings.get(match[1])
        if value is None:
            raise ExpressionError(f"The app setting {match[1]!r} is not set. Put it into local.settings.json.")
        return value

    return _SETTING.sub(value_of, text)


class Template:
    """A text with expressions.

    Args:
        text: The text, such as ``notes/{mcptoolargs.name}.txt``.
        function: The name of the function, which is ``{sys.MethodName}``.

    Raises:
        ExpressionError: A brace has no other one, or an expression or its format is not valid.
    """

    def __init__(self, text: str, function: str = "") -> None:
        self._text = text
        self._function = function
        self._tokens: list[str | _Expression] = []
        for match in _TOKEN.finditer(text):
            if match["unbalanced"]:
                raise ExpressionError(f"{text!r} has a {match['unbalanced']} without its other brace.")
            if match["escape"] or match["literal"]:
                self._tokens.append(match["literal"] or match["escape"][0])
            else:
                self._tokens.append(self._parsed(match["expression"]))

    def _parsed(self, expression: str) -> _Expression:
        name, _, text_format = expression.partition(":")
        if name.lower().startswith((_RANDOM, _DATE)):
            text_format = text_format.partition(".")[0]  # Azure ends the name and its format at the first dot
        parts = tuple(name.split("."))
        parsed = _Expression(parts, text_format)
        if not _IDENTIFIER.fullmatch(name) or "" in parts:
            raise ExpressionError(f"{self._text!r} has {{{expression}}}, which is not a valid expression.")
        if "-" in parts[0] and _system_value(parsed, "") is None:
            raise ExpressionError(f"{self._text!r} has {{{expression}}}: the name can't have a hyphen.")
        return parsed

    @property
    def has_expressions(self) -> bool:
        """Whether the text depends on the call."""
        return any(isinstance(token, _Expression) for token in self._tokens)

    def check(self, trigger: TriggerNames) -> list[str]:
        """Return what is probably not meant; raise ExpressionError for a name that the trigger does not have."""
        expressions = [token for token in self._tokens if isinstance(token, _Expression)]
        warnings: list[str] = []
        for expression in expressions:
            name = expression.parts[0].lower()
            if name not in trigger.names and _system_value(expression, "") is None:
                raise ExpressionError(self._unknown(expression, trigger))
            warnings += self._warnings(expression, trigger)
        return warnings

    def _unknown(self, expression: _Expression, trigger: TriggerNames) -> str:
        problem = f"{self._text!r} has {{{expression.text}}}, which the trigger does not have."
        argument = _without_case(expression.text, trigger.arguments)
        if argument is not None:
            return f"{problem} Did you mean {{{trigger.group}.{argument}}}?"
        names = sorted(f"{name}.<argument>" if name == trigger.group else name for name in trigger.names)
        return f"{problem} It has: {', '.join(names)}."

    def _warnings(self, expression: _Expression, trigger: TriggerNames) -> list[str]:
        name, *members = expression.parts
        if name.lower() == trigger.constant and not members:
            meant = name if name in trigger.arguments else "ARGUMENT"
            advice = f"For the argument, write {{{trigger.group}.{meant}}}."
            return [f"{self._text!r} is the same in each call: {{{name}}} is the name of what is called. {advice}"]
        if name.lower() != trigger.group or not members or members[0] in trigger.arguments:
            return []
        argument = _without_case(members[0], trigger.arguments)
        if argument is not None:
            return [f"{self._text!r} has no value for {members[0]!r}: write {argument!r}, in this case of letters."]
        problem = f"{self._text!r} names the argument {members[0]!r}, which the function does not declare."
        return [f"{problem} Add it to the properties of the trigger."]

    def value(self, trigger: Trigger) -> str:
        """Return the text for one call; raise ExpressionError if an expression has no value."""
        return "".join(
            token if isinstance(token, str) else _value_of(token, trigger, self._function) for token in self._tokens
        )


def _value_of(expression: _Expression, trigger: Trigger, function: str) -> str:
    name, *members = expression.parts
    try:
        value = trigger.value_of(name)
    except KeyError:
        text = _system_value(expression, function)
        if text is None:
            raise _without_value(expression) from None
        return text
    is_exact = trigger.has_exact_members(name)
    for member in members:
        key = member if is_exact else _without_case(member, value if isinstance(value, Mapping) else ())
        if not isinstance(value, Mapping) or key not in value:
            raise _without_value(expression)
        value = value[key]
    return _text_of(value)


def _without_value(expression: _Expression) -> ExpressionError:
    return ExpressionError(f"The expression {{{expression.text}}} has no value in this call.")


def _text_of(value: Any) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return number_text(value)
    return str(value) if isinstance(value, str | int) else ""  # of an object, an array and null


def _system_value(expression: _Expression, function: str) -> str | None:
    """Return the value of an expression that needs no trigger, or None if it is another one.

    Raises:
        ExpressionError: Its format is not valid, or ``sys`` has no such member.
    """
    name, *members = (part.lower() for part in expression.parts)
    if name == _SYSTEM:
        name = {"randguid": _RANDOM, "utcnow": _DATE, "methodname": "function"}.get(".".join(members), "")
        if not name:
            raise ExpressionError(f"{{{expression.text}}} is not valid. sys has MethodName, RandGuid and UtcNow.")
    text_format = expression.text_format.strip()
    try:
        if name.startswith(_RANDOM):
            return guid_text(uuid.uuid4(), text_format or "D")
        if name.startswith(_DATE):
            return date_text(datetime.now(UTC), text_format or _DEFAULT_DATE)
    except ValueError as error:
        raise ExpressionError(f"{{{expression.text}:{text_format}}} is not valid: {error}.") from None
    return function if name == "function" else None


def _without_case(name: str, names: Any) -> str | None:
    """Return the one of some names that differs from a name at most in its case, or None."""
    return next((candidate for candidate in names if candidate.lower() == name.lower()), None)
