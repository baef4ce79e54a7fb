"""What a failure of a component means in FastMCP, and the text that clients get of it.

How it works: an error of FastMCP that the author has raised (`ToolError`, `ResourceError`, ...) keeps its text. Every
other exception becomes one, which names the component, and has the text of the exception unless the server masks it.
The server's log has the exception.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from funcmcp._compat.errors import FastMCPError, NotFoundError, PromptError, ResourceError, ToolError
from funcmcp._compat.input_rounds import InputRequiredError
from funcmcp._protocol.errors import MISSING_CLIENT_CAPABILITY, MCPError
from funcmcp._protocol.errors import ToolError as NativeToolError
from funcmcp._server.log import log_failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._server.calls.context import RequestContext

    Failure = Callable[[str], Exception]

URL_ELICITATION_REQUIRED = -32042
"""The code of the error that sends the user to a URL (2025-11-25)."""

_CODES_OF_REQUESTS = frozenset({MISSING_CLIENT_CAPABILITY, URL_ELICITATION_REQUIRED})
"""Codes of errors that say what the client has to do before it sends the request again."""

_TOO_MANY_REQUESTS = 429


def naming_component(handler: Callable[..., Any], kind: str, name: str, shown: tuple[type, ...]) -> Callable[..., Any]:
    """Return the handler of a component whose failures are errors of FastMCP.

    Args:
        handler: The handler.
        kind: ``"tool"``, ``"resource"`` or ``"prompt"``.
        name: The component's name. A resource is named by the URI of the request.
        shown: The types of exceptions whose text clients get.
    """

    async def handle(request: RequestContext, *arguments: Any) -> Any:
        try:
            return await handler(request, *arguments)
        except Exception as error:
            failure = _failure_of(error, kind, arguments[0] if kind == "resource" else name, shown)
            if failure is error:
                raise
            feature = "" if request.feature is None else request.feature.key
            log_failure(error, os.urandom(8).hex(), feature, request.request.method)
            raise failure from error

    return handle


def _failure_of(error: Exception, kind: str, name: str, shown: tuple[type, ...]) -> Exception:
    """Return the error with which a request fails: the exception itself if its text is meant for clients."""
    if kind == "tool":
        return _failure_of_tool(error, name, shown)
    if isinstance(error, FastMCPError | NativeToolError | MCPError):
        return error
    if kind == "resource":
        upstream = _text_about_upstream(error)
        return ResourceError(upstream or _text(error, f"Error reading resource {name!r}", shown))
    return PromptError(_text(error, f"Error rendering prompt {name!r}", shown))


def _failure_of_tool(error: Exception, name: str, shown: tuple[type, ...]) -> Exception:
    if isinstance(error, NativeToolError | InputRequiredError):
        return error
    if isinstance(error, MCPError) and error.code in _CODES_OF_REQUESTS:
        return error
    if isinstance(error, ResourceError | PromptError):
        return ToolError(error.message)
    if isinstance(error, FastMCPError) and not isinstance(error, NotFoundError):
        return error
    return ToolError(_text_about_upstream(error) or _text(error, f"Error calling tool {name!r}", shown))


def _text(error: Exception, text: str, shown: tuple[type, ...]) -> str:
    """Return the text for clients, with that of the exception if they get it."""
    if not isinstance(error, (*shown, MCPError, NotFoundError)) or not shown:
        return text
    try:
        return f"{text}: {error.message if isinstance(error, MCPError) else error}"
    except Exception:  # noqa: BLE001 - an author's own __str__ may raise anything
        return text


def _text_about_upstream(error: Exception) -> str | None:
    """Return what a client can do about an error of httpx, which it learns also if the server masks errors."""
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(error).__mro__}
    names = {name for package, name in kinds if package in {"httpx", "httpx2"}}
    if "TimeoutException" in names:
        return "Upstream request timed out, please retry"
    if "HTTPStatusError" in names:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status == _TOO_MANY_REQUESTS:
            return "Rate limited by upstream API, please retry later"
    return None
