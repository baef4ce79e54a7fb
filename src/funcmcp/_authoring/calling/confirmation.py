"""A person's confirmation before a tool runs: ``@mcp.tool(confirm="Delete {name}?")``.

How it works: the handler of such a tool validates the arguments, makes the text, and asks the client's user with a form
before it calls the function. In 2026-07-28 the call ends with `input_required`, and its answer counts only for the same
caller, tool, arguments and text, once, and within the hour (`funcmcp._server.calls.rounds`). In older revisions the
question is a request within the call. In a task the question sets the status `input_required`, and the answer counts
for all runs of the task. The time limit of the call begins with the answer.

The texts of arguments come from the model, so the person sees hidden characters escaped, and no line breaks.
"""

from __future__ import annotations

from datetime import date, datetime
from string import Formatter
from typing import TYPE_CHECKING, Any, Literal

from funcmcp._auth.owner import owner_of
from funcmcp._authoring.calling.arguments import is_spread
from funcmcp._authoring.calling.function_call import Always, CallKind, FeatureFunction, FunctionCall, special_type
from funcmcp._authoring.calling.question_time import pausing_time_limit
from funcmcp._authoring.calling.uploaded_file import UploadedFile
from funcmcp._authoring.results.result_writer import jsonable
from funcmcp._authoring.schemas.python_values import fields_of
from funcmcp._authoring.signatures.signature import EMPTY
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import CannotAskError, MissingClientCapability, ToolError
from funcmcp._server.calls.rounds import CONFIRMATION
from funcmcp._server.catalog.features import Confirmed
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.log import logger, quote
from funcmcp._text.visible import visible, visible_line

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import TypeAlias

    from funcmcp._authoring.calling.services import Services
    from funcmcp._authoring.calling.tool_call import ToolCall, ToolCallResult
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import ToolHandler

    ConfirmText: TypeAlias = str | Callable[..., Awaitable[str | None] | str | None]
    Otherwise: TypeAlias = Literal["refuse", "run"]
    TextCall: TypeAlias = "FunctionCall[None, str | None, Mapping[str, Any]]"

MAX_TEXT = 4000
"""Characters of a question."""

_MAX_VALUE, _VALUE_BEGINNING, _VALUE_END = 500, 400, 60
"""Characters of an argument in a question, and those that are left of a longer one."""

_VALUES: frozenset[Any] = frozenset({bool, bytes, date, datetime, float, int, str})
"""Types that are arguments and not services."""

_FORM = {
    "type": "object",
    "properties": {"confirm": {"type": "boolean", "title": "Confirm"}},
    "required": ["confirm"],
}
_YES = {"action": "accept", "content": {"confirm": True}}
_REFUSALS = {
    "decline": "The person has declined, so {} did not run. Do not call it again unless the person asks for it.",
    "cancel": "The person has closed the question without an answer, so {} did not run.",
}


def confirmed(call: ToolCall, confirmation: PersonsConfirmation) -> ToolHandler:
    """Return the handler of a tool that asks for a confirmation before it runs."""

    async def run(context: RequestContext, arguments: dict[str, Any]) -> ToolCallResult:
        await confirmation.ask(context, arguments)
        return await call.run(context, arguments)

    return run


class PersonsConfirmation:
    """The confirmation of one tool.

    Args:
        call: The calls of the tool's function.
        text: A text with names of arguments in braces, or a function of some of the arguments that returns the text, or
            None if the call needs no confirmation.
        otherwise: What happens to the calls of clients that can't ask: ``"refuse"`` or ``"run"``.
        services: Types that are registered here are injected into the function.

    Attributes:
        is_required: Whether a call is refused if its client can't ask a person.

    Raises:
        RegistrationError: An option has the wrong type or value, or the text names an argument that does not exist.
    """

    def __init__(self, call: ToolCall, text: ConfirmText, otherwise: Otherwise, services: Services) -> None:
        if otherwise not in ("refuse", "run"):
            raise RegistrationError(f"confirm_otherwise of {call.name} must be 'refuse' or 'run'; got {otherwise!r}.")
        self.is_required = otherwise == "refuse"
        self._call = call
        self._template = ""
        self._function: TextCall | None = None
        if isinstance(text, str):
            self._template = _checked_template(text, call)
        elif callable(text):
            function = FeatureFunction(f"confirm of {call.name}", text, services)
            self._function = FunctionCall(function, _TEXT_CALL, None)
            _check_parameters(self._function, call)
        else:
            raise RegistrationError(f"confirm of {call.name} must be a text or a function; got {text!r:.60}.")

    async def ask(self, context: RequestContext, arguments: dict[str, Any]) -> Confirmed | None:
        """Ask the person, and return the yes; None if the call needs none. The author's own calls are not asked.

        Raises:
            ToolError: The person does not say yes, or can't be asked.
            MissingClientCapability: A client of 2026-07-28 can't show forms.
        """
        kwargs = self._call.read(arguments)
        await self._call.open_files(kwargs, context)
        text = await self._text_for(context, _values_of(self._call, kwargs), arguments)
        if text is None:
            return None
        name = self._call.name
        question = {"method": "elicitation/create", "params": {"message": text, "requestedSchema": _FORM}}
        if context.by_author:
            return Confirmed(question, _YES)
        try:
            answer = await _answer_to(question, context)
            action = _action_of(answer)
        except (CannotAskError, MissingClientCapability) as error:
            if self.is_required:
                raise _refusal_of(error, name) from None
            answer, action = _YES, "run without a question"
        logger.info("confirmation %s tool=%s owner=%s", action, quote(name), owner_of(context.principal) or "anonymous")
        if action in _REFUSALS:
            raise ToolError(_REFUSALS[action].format(name))
        return Confirmed(question, answer)

    async def _text_for(
        self, context: RequestContext, values: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> str | None:
        if self._function is None:
            text: str | None = _filled(self._template, values, arguments)
        else:
            text = await self._function.run(context, values)
        return None if text is None else _cut(visible(text), MAX_TEXT, MAX_TEXT - 200, 100)


async def _answer_to(question: dict[str, Any], context: RequestContext) -> dict[str, Any]:
    """Ask the person, and return the answer. The time limit of the call begins afterwards."""
    with pausing_time_limit(context, "the question of confirm="):
        return (await context.ask({CONFIRMATION: question}))[CONFIRMATION]


def _action_of(answer: Mapping[str, Any]) -> str:
    """Return what the person has done: "accept", "decline" or "cancel". A yes with an empty box is a no."""
    action: str = answer["action"]
    return "decline" if action == "accept" and answer["content"]["confirm"] is not True else action


def _refusal_of(error: CannotAskError | MissingClientCapability, tool: str) -> Exception:
    """Return the error of a call whose client can't ask a person."""
    need = f"{tool} asks a person before it runs, which needs"
    if isinstance(error, MissingClientCapability):
        return MissingClientCapability(error.data["requiredCapabilities"], need=need)  # type: ignore[index] # as made
    return ToolError(f"{need} a client that supports elicitation. {error}")


def _checked_template(text: str, call: ToolCall) -> str:
    """Return a text whose names in braces are arguments; raise RegistrationError."""
    place = f"confirm of {call.name}"
    try:
        parts = list(Formatter().parse(text))
    except ValueError as error:
        raise RegistrationError(f"{place} is not a valid text: {error}. Write {{{{ and }}}} for braces.") from None
    if not text.strip():
        raise RegistrationError(f"{place} is empty.")
    names = _argument_names(call)
    for _, field, specification, conversion in parts:
        if field is None:
            continue
        if specification or conversion or not field.isidentifier():
            marks = (f"!{conversion}" if conversion else "") + (f":{specification}" if specification else "")
            raise RegistrationError(
                f"{place} has {{{field}{marks}}} with more than the name of an argument. "
                "Pass a function for other texts."
            )
        if names is not None and field not in names:
            raise RegistrationError(f"{place} names {{{field}}}. The arguments: {', '.join(names) or 'none'}.")
    return text


def _check_parameters(function: TextCall, call: ToolCall) -> None:
    """Raise RegistrationError if a function takes an argument that the tool does not have."""
    types, names = function.signature.try_types(), _argument_names(call)
    if types is None or names is None:
        return
    for parameter in types.parameters:
        may_be_service = parameter.annotation is not EMPTY and parameter.bare not in _VALUES
        if parameter.name not in names and parameter.default is EMPTY and not may_be_service:
            raise RegistrationError(
                f"{function.name} takes {parameter.name!r}, which is not an argument of the tool. "
                f"The arguments: {', '.join(names) or 'none'}."
            )


def _argument_names(call: ToolCall) -> list[str] | None:
    """Return the names of a tool's arguments; None while its annotations can't be resolved."""
    if call.handwritten_schema is not None:
        return list(call.handwritten_schema.get("properties", {}))
    types = call.signature.try_types()
    if types is None:
        return None
    names: list[str] = []
    for parameter in types.parameters:
        if is_spread(parameter):
            names += _members_of_type(parameter.bare)
        elif special_type(parameter) is None:
            names.append(parameter.name)
    return names


def _members_of_type(kind: Any) -> list[str]:
    """Return the names of the fields of a model, a dataclass or a TypedDict."""
    fields = fields_of(kind)
    return list(kind.__annotations__ if fields is None else fields)


def _values_of(call: ToolCall, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the values of the arguments, with those of defaults."""
    if call.plan.all_arguments is not None:
        return dict(kwargs[call.plan.all_arguments])
    values: dict[str, Any] = {}
    for parameter in call.plan.arguments:
        value = kwargs.get(parameter.name, parameter.default)
        if not is_spread(parameter):
            values[parameter.name] = value
        elif isinstance(value, dict):
            values.update(value)
        else:
            values.update({name: getattr(value, name) for name in _members_of_type(parameter.bare)})
    return values


def _filled(template: str, values: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """Return a text with the values of its arguments.

    Args:
        template: The text.
        values: The values that the function gets.
        arguments: What the client has sent, for values that JSON can't carry.
    """
    parts: list[str] = []
    for literal, field, _, _ in Formatter().parse(template):
        parts.append(literal)
        if field is not None:
            parts.append(_shown(values.get(field), arguments.get(field)))
    return "".join(parts)


def _shown(value: Any, sent: Any) -> str:
    """Return a value for a person: a text as it is, other values as JSON, hidden characters escaped."""
    text = value if isinstance(value, str) else _text_of(value, sent)
    if len(text) <= _MAX_VALUE:
        return _cut(visible_line(text), _MAX_VALUE, _VALUE_BEGINNING, _VALUE_END)
    # Escaping makes a text longer, and takes long for one of megabytes.
    beginning, end = visible_line(text[:_VALUE_BEGINNING]), visible_line(text[-_VALUE_END:])
    omission = f"[{len(text) - _VALUE_BEGINNING - _VALUE_END:,} characters are not shown]"
    return f"{beginning[:_VALUE_BEGINNING]} {omission} {end[-_VALUE_END:]}"


def _text_of(value: Any, sent: Any) -> str:
    """Return a file with its name, another value as JSON, or what the client has sent if JSON can't carry the value."""
    if isinstance(value, UploadedFile):
        return str(value)
    if isinstance(value, list | tuple) and value and all(isinstance(item, UploadedFile) for item in value):
        return ", ".join(map(str, value))
    try:
        return encode(jsonable(value)).decode()
    except ValueError:
        return encode(sent).decode()


def _cut(text: str, longest: int, beginning: int, end: int) -> str:
    """Return a text with a beginning and an end of so many characters if it is longer than allowed."""
    if len(text) <= longest:
        return text
    return f"{text[:beginning]} [{len(text) - beginning - end:,} characters are not shown] {text[-end:]}"


def _new_text_reader(call: TextCall) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return the function that takes the arguments of the text's function out of those of the tool."""
    parameters = call.plan.arguments

    def read(values: Mapping[str, Any]) -> dict[str, Any]:
        return {parameter.name: values[parameter.name] for parameter in parameters if parameter.name in values}

    return read


def _new_text_renderer(call: TextCall) -> Always[str | None]:
    def render(value: Any) -> str | None:
        if value is None or (isinstance(value, str) and value.strip()):
            return value
        raise TypeError(f"The function {call.name} must return a text, or None for no question; got {value!r:.60}.")

    return Always(render)


_TEXT_CALL = CallKind(_new_text_reader, _new_text_renderer)
