"""Questions that a tool may ask its client, as requests on the wire, and their answers as Python values.

Source: "client/elicitation", "client/sampling" and "client/roots" of the specification.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar, cast

from funcmcp.protocol.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Question(Protocol[T_co]):
    """Something to ask the client."""

    def request(self) -> dict[str, Any]:
        """Return the request: ``{"method": ..., "params": ...}``."""

    def answer(self, result: dict[str, Any]) -> T_co:
        """Return the value of a client's result."""


@dataclass(frozen=True, slots=True)
class Elicited(Generic[T]):
    """A user's answer.

    Attributes:
        action: `accept`, `decline` or `cancel`.
        content: what the user filled in; None unless accepted.
    """

    action: Literal["accept", "decline", "cancel"]
    content: T | None


class Elicit(Generic[T]):
    """Ask the user to fill in a form.

    Args:
        message: what to tell the user.
        schema: a flat pydantic model, dataclass or TypedDict, or a JSON schema.
    """

    def __init__(self, message: str, schema: type[T] | dict[str, Any]) -> None:
        self._message = message
        self._schema = schema

    def request(self) -> dict[str, Any]:
        """Return the request."""
        schema = self._schema if isinstance(self._schema, dict) else _form(self._schema)
        # `mode` is left out: without it a form is meant in every revision, and the older ones do not know it.
        return {"method": "elicitation/create", "params": {"message": self._message, "requestedSchema": schema}}

    def answer(self, result: dict[str, Any]) -> Elicited[T]:
        """Return what the user chose and filled in; raise ToolError if it does not fit the type."""
        if result["action"] != "accept":
            return Elicited(result["action"], None)
        content = result.get("content", {})
        if isinstance(self._schema, dict):
            return Elicited("accept", cast("T", content))
        from funcmcp.authoring.arguments import Validator  # noqa: PLC0415 - pydantic is loaded when it is needed

        try:
            return Elicited("accept", Validator.of_model(self._schema)(content))
        except ToolError as error:
            raise ToolError(f"The user's answer does not fit. {error}") from None


class ElicitURL:
    """Ask the user to open a page.

    Args:
        message: what to tell the user.
        url: the page.
    """

    def __init__(self, message: str, url: str) -> None:
        self._message = message
        self._url = url

    def request(self) -> dict[str, Any]:
        """Return the request."""
        params = {"mode": "url", "message": self._message, "url": self._url, "elicitationId": self._url}
        return {"method": "elicitation/create", "params": params}

    def answer(self, result: dict[str, Any]) -> Elicited[None]:
        """Return what the user chose."""
        return Elicited(result["action"], None)


class Sample:
    """Ask the client's model.

    Args:
        messages: one text from the user, or SamplingMessage objects.
        max_tokens: the longest answer wanted.
        params: more members of the request's params under their wire names.
    """

    def __init__(self, messages: str | Sequence[Mapping[str, Any]], *, max_tokens: int, **params: Any) -> None:
        if isinstance(messages, str):
            messages = [{"role": "user", "content": {"type": "text", "text": messages}}]
        self._params = {"messages": list(messages), "maxTokens": max_tokens, **params}

    def request(self) -> dict[str, Any]:
        """Return the request."""
        return {"method": "sampling/createMessage", "params": self._params}

    def answer(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the CreateMessageResult."""
        return result


class ListRoots:
    """Ask for the client's roots."""

    def request(self) -> dict[str, Any]:
        """Return the request."""
        return {"method": "roots/list", "params": {}}

    def answer(self, result: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the Root objects."""
        roots: list[dict[str, Any]] = result["roots"]
        return roots


_ALLOWED = frozenset({"string", "integer", "number", "boolean"})


def _form(model: type[Any]) -> dict[str, Any]:
    """Return the flat schema of a form's type; raise TypeError if it is not flat."""
    from funcmcp.authoring.schema import input_schema  # noqa: PLC0415 - pydantic is loaded when it is needed

    schema = input_schema(model)
    for name, member in schema.get("properties", {}).items():
        choices = member.get("type") == "array" and "enum" in member.get("items", {})
        if member.get("type") not in _ALLOWED and not choices:
            raise TypeError(
                f"A form is flat: the field {name!r} of {model.__name__} must be a text, a number, a boolean, "
                "an enum of texts or a list of such an enum."
            )
    return {"type": "object", "properties": {}, **schema}
