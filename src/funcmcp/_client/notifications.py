"""Notifications of a server as Python objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funcmcp._objects.public_names import public
from funcmcp._protocol.objects import number_of

if TYPE_CHECKING:
    from collections.abc import Mapping


@public("funcmcp.client")
@dataclass(frozen=True, slots=True)
class ProgressUpdate:
    """How far a request is.

    Attributes:
        progress: The amount of work done so far, in a unit that the server chooses.
        total: The amount of all the work, in the same unit. None if the server does not know it.
        message: What the server does at the moment, for people. None if the server does not say it.
    """

    progress: float
    total: float | None = None
    message: str | None = None


@public("funcmcp.client")
@dataclass(frozen=True, slots=True)
class LogMessage:
    """A log message of the server.

    Attributes:
        level: The severity: debug, info, notice, warning, error, critical, alert or emergency.
        data: The message, any JSON value. Most servers send a string.
        logger: The name of the server's logger. None if the server does not name one.
    """

    level: str
    data: Any
    logger: str | None = None


def progress_of(params: Mapping[str, Any]) -> ProgressUpdate | None:
    """Return the update in a ``notifications/progress``. Return None if the progress is not a number."""
    progress = number_of(params.get("progress"))
    if progress is None:
        return None
    message = params.get("message")
    return ProgressUpdate(progress, number_of(params.get("total")), message if isinstance(message, str) else None)


def log_message_of(params: Mapping[str, Any]) -> LogMessage:
    """Return the log message in a ``notifications/message``."""
    logger = params.get("logger")
    return LogMessage(str(params.get("level", "info")), params.get("data"), logger if isinstance(logger, str) else None)


@public("funcmcp.client")
@dataclass(frozen=True, slots=True)
class Change:
    """What has changed at the server.

    Attributes:
        kind: A list: ``tools``, ``prompts`` or ``resources``, which includes the templates. For the contents of a
            resource: ``resource``.
        uri: The URI of the resource, which may be a part of one that the client subscribed to. None for a list.
    """

    kind: str
    uri: str | None = None


LIST_CHANGES = {
    "notifications/tools/list_changed": Change("tools"),
    "notifications/prompts/list_changed": Change("prompts"),
    "notifications/resources/list_changed": Change("resources"),
}


def change_of(method: str, params: Mapping[str, Any]) -> Change | None:
    """Return the change that a notification reports. Return None for other notifications."""
    uri = params.get("uri")
    if method == "notifications/resources/updated" and isinstance(uri, str):
        return Change("resource", uri)
    return LIST_CHANGES.get(method)
