"""Forms and answers of `Context.elicit`."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_origin

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.authoring.calling.questions import Elicited

T = TypeVar("T")


class ElicitationResult(Generic[T]):
    """The user's answer to a form.

    Attributes:
        action: ``"accept"``, ``"decline"`` or ``"cancel"``.
        data: The values of the form; None if the user did not accept.
    """

    action: str
    data: Any = None

    @property
    def content(self) -> Any:
        """The values of the form."""
        return self.data


class AcceptedElicitation(ElicitationResult[T]):
    """The user filled in the form."""

    action: Literal["accept"] = "accept"
    __match_args__ = ("data",)

    def __init__(self, data: T) -> None:
        self.data = data


class DeclinedElicitation(ElicitationResult[Any]):
    """The user declined."""

    action: Literal["decline"] = "decline"


class CancelledElicitation(ElicitationResult[Any]):
    """The user closed the form."""

    action: Literal["cancel"] = "cancel"


def question_of(form: Any) -> tuple[Any, Callable[[Any], Any] | None]:
    """Return the schema of a form for `FeatureContext.elicit`, and the function that takes the value out of the answer.

    A simple type, an enum or a list of choices becomes a form with one field, ``value``.
    """
    if form is None:
        return {"type": "object", "properties": {}}, None
    if isinstance(form, dict) and "type" in form:
        return form, None
    if isinstance(form, dict):
        form = list(form)
    if isinstance(form, list | tuple):
        form = Literal[tuple(form)]
    is_simple = form in {str, int, float, bool} or get_origin(form) is not None
    if is_simple or (isinstance(form, type) and issubclass(form, Enum)):
        from typing_extensions import TypedDict  # noqa: PLC0415 - pydantic requires this TypedDict on Python 3.11

        return TypedDict("Form", {"value": form}), _value  # type: ignore[operator]
    return form, None


def answered(answer: Elicited, unwrap: Callable[[Any], Any] | None) -> ElicitationResult[Any]:
    """Return an answer in the classes of FastMCP and the official SDK."""
    if answer.action == "accept":
        return AcceptedElicitation(answer.content if unwrap is None else unwrap(answer.content))
    if answer.action == "decline":
        return DeclinedElicitation()
    return CancelledElicitation()


def _value(content: Any) -> Any:
    return content["value"]
