"""Forms and answers of `Context.elicit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from funcmcp._authoring.calling.questions import Elicited

T = TypeVar("T")


@public("funcmcp.compat")
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


@public("funcmcp.compat")
class AcceptedElicitation(ElicitationResult[T]):
    """The user filled in the form."""

    action: Literal["accept"] = "accept"
    __match_args__ = ("data",)

    def __init__(self, data: T) -> None:
        self.data = data


@public("funcmcp.compat")
class DeclinedElicitation(ElicitationResult[Any]):
    """The user declined."""

    action: Literal["decline"] = "decline"


@public("funcmcp.compat")
class CancelledElicitation(ElicitationResult[Any]):
    """The user closed the form."""

    action: Literal["cancel"] = "cancel"


def question_of(form: Any) -> Any:
    """Return the schema of a form for `funcmcp.Context.elicit`. A dict without a type has choices and their titles."""
    if form is None:
        return {"type": "object", "properties": {}}
    if isinstance(form, dict) and "type" not in form:
        return list(form)
    return form


def answered(answer: Elicited[Any]) -> ElicitationResult[Any]:
    """Return an answer in the classes of FastMCP and the official SDK."""
    if answer.action == "accept":
        return AcceptedElicitation(answer.content)
    if answer.action == "decline":
        return DeclinedElicitation()
    return CancelledElicitation()
