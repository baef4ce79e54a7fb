"""What an orchestrator function answers: the actions that it asks for, and its result.

Source: OrchestratorState of azure-functions-durable 1.7 and durable-functions 3.5. An orchestrator that raises an
exception answers with a text that ends with its state as JSON.
"""

from __future__ import annotations

import ast
import contextlib
import json
import re
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from funcmcp_host.json_texts import loads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp_host.workers.worker import Value

_STATE_LABEL = "$OutOfProcData$:"
_WRITTEN = re.compile(r"\w+\((['\"].*['\"])\)", re.DOTALL)
"""An exception as ``repr`` writes it, which is what azure-functions-runtime reports."""


class ActionType(IntEnum):
    """The kinds of actions."""

    CALL_ACTIVITY = 0
    CALL_ACTIVITY_WITH_RETRY = 1
    CALL_SUB_ORCHESTRATOR = 2
    CALL_SUB_ORCHESTRATOR_WITH_RETRY = 3
    CONTINUE_AS_NEW = 4
    CREATE_TIMER = 5
    WAIT_FOR_EXTERNAL_EVENT = 6
    CALL_ENTITY = 7
    CALL_HTTP = 8
    SIGNAL_ENTITY = 9
    SCHEDULED_SIGNAL_ENTITY = 10
    WHEN_ANY = 11
    WHEN_ALL = 12


class AnswerError(Exception):
    """An orchestrator's answer can't be carried out; the text says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an orchestrator function answers to a history.

    Attributes:
        actions: All that it has asked for since its beginning, without the groups of *all* and *any*.
        is_done: Whether it has returned or continues as new.
        output: What it has returned.
        error: The text of its exception; None if it has raised none.
        custom_status: What it has set as its status.
    """

    actions: list[dict[str, Any]]
    is_done: bool = False
    output: Any = None
    error: str | None = None
    custom_status: Any = None


def read_answer(value: Value) -> Answer:
    """Return the answer of a function that has returned.

    Raises:
        AnswerError: It is not the answer of an orchestrator.
    """
    state = decoded(value)
    if not isinstance(state, dict) or not isinstance(state.get("actions"), list):
        raise AnswerError("It did not return the state of an orchestration.")
    return _answer(state)


def answer_of_failure(text: str) -> Answer:
    """Return the answer of a function that has raised an exception."""
    written = _WRITTEN.fullmatch(text)
    if written is not None:
        with contextlib.suppress(ValueError, SyntaxError):
            text = str(ast.literal_eval(written[1]))
    message, _, rest = text.partition(_STATE_LABEL)
    try:
        state, _ = json.JSONDecoder().raw_decode(rest)
    except ValueError:  # another exception, or a text that was shortened
        return Answer([], error=message.rstrip())
    return _answer(state, error=str(state.get("error") or message))


def _answer(state: dict[str, Any], error: str | None = None) -> Answer:
    return Answer(
        list(_single_actions(state["actions"])),
        is_done=bool(state.get("isDone")),
        output=state.get("output"),
        error=error,
        custom_status=state.get("customStatus"),
    )


def _single_actions(items: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the actions of nested lists and groups in their order, which is that of the ids of their tasks."""
    for item in items:
        if isinstance(item, list):
            yield from _single_actions(item)
        elif not isinstance(item, dict) or not isinstance(item.get("actionType"), int):
            raise AnswerError("Its state has an action without a type.")
        elif item["actionType"] in {ActionType.WHEN_ANY, ActionType.WHEN_ALL}:
            yield from _single_actions(item["compoundActions"])
        else:
            yield item


def signature_of(action: dict[str, Any]) -> str:
    """Return what must be the same each time an orchestrator runs: the action's type and name."""
    name = action.get("functionName") or action.get("externalEventName") or action.get("operation") or ""
    return f"{action['actionType']} {name}"


def decoded(value: Value) -> Any:
    """Return what a function returned as JSON has it; a text stays a text unless the worker says that it is JSON.

    Raises:
        AnswerError: It is not JSON, or an HTTP response.
    """
    if value.kind == "json":
        try:
            return loads(value.data)
        except ValueError as error:
            raise AnswerError(f"It returned JSON that can't be read ({error}).") from error
    if value.kind == "http":
        raise AnswerError("It returned an HTTP response in place of a value.")
    if value.kind == "bytes":
        return value.data.decode("utf-8", "replace")
    return value.data
