"""Forms and answers of `Context.elicit`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from funcmcp._compat.errors import mcp_error
from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_REQUEST, AnsweredWithError, CannotAskError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp._authoring.calling.questions import Elicited

T = TypeVar("T")


@contextmanager
def raising_mcp_errors(unsupported: str) -> Iterator[None]:
    """Raise a McpError in the block if the client can't be asked, or answers with an error, as FastMCP does.

    Args:
        unsupported: The first sentence for a client that can't be asked.
    """
    try:
        yield
    except CannotAskError as error:
        raise mcp_error(INVALID_REQUEST, f"{unsupported}. {error}") from error
    except AnsweredWithError as error:
        code, message = error.error.get("code"), error.error.get("message")
        raise mcp_error(code if isinstance(code, int) else INTERNAL_ERROR, str(message or error)) from error


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
class AcceptedUrlElicitation(ElicitationResult[None]):
    """The user agreed to visit the page."""

    action: Literal["accept"] = "accept"


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


def answered_url(answer: Any) -> ElicitationResult[Any]:
    """Return the answer to a page in the classes of the official SDK.

    Args:
        answer: An object with the attribute ``action``.
    """
    if answer.action == "accept":
        return AcceptedUrlElicitation()
    return DeclinedElicitation() if answer.action == "decline" else CancelledElicitation()


@public("funcmcp.compat")
async def elicit_url(
    session: Any,
    message: str,
    url: str,
    elicitation_id: str | None = None,
    related_request_id: Any = None,  # noqa: ARG001 - it is that of the session's request
) -> ElicitationResult[Any]:
    """Ask the user to visit a page, as ``mcp.server.elicitation.elicit_url``.

    Args:
        session: The session of a context.
        message: The reason for the visit, which the user reads.
        url: The page's URL.
        elicitation_id: The question's id, in revisions that have one.
        related_request_id: Ignored.
    """
    return answered_url(await session.elicit_url(message, url, elicitation_id))


def answered(answer: Elicited[Any]) -> ElicitationResult[Any]:
    """Return an answer in the classes of FastMCP and the official SDK."""
    if answer.action == "accept":
        return AcceptedElicitation(answer.content)
    if answer.action == "decline":
        return DeclinedElicitation()
    return CancelledElicitation()
