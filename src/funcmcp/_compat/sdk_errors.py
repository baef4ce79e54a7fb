"""The errors of the official SDK's `MCPServer`: what a failure means there, and the text that clients get of it.

How it works: a failure that the author has anticipated (`ToolError`, `ResourceError`) keeps its text. Every other
exception is a crash: clients learn only which feature has crashed, and the server's log has the exception.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from funcmcp._compat.errors import (
    McpError,
    ResourceError,
    ResourceNotFoundError,
    ToolError,
    UnexpectedResourceError,
    UnexpectedToolError,
)
from funcmcp._compat.middleware_adapters import as_mcp_error
from funcmcp._protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, MCPError
from funcmcp._protocol.errors import ToolError as NativeToolError
from funcmcp._server.log import log_failure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funcmcp._server.calls.context import RequestContext

URL_ELICITATION_REQUIRED = -32042
"""The code with which a tool sends the user to a URL; source: 2025-11-25 "client/elicitation"."""


class MCPDeprecationWarning(UserWarning):
    """The category of the official SDK's warnings, for filters. `funcmcp.compat` does not warn of methods that work."""


class UrlElicitationRequiredError(McpError):
    """A tool can go on only after the user has opened pages. Clients get the JSON-RPC error -32042 with the pages.

    Args:
        elicitations: The pages, as ``ElicitRequestURLParams``.
        message: A text for the client.
    """

    def __init__(self, elicitations: Sequence[Any], message: str | None = None) -> None:
        self.elicitations: list[Any] = list(elicitations)
        pages = [page.model_dump(by_alias=True, exclude_none=True) for page in elicitations]
        plural = "s" if len(pages) > 1 else ""
        text = f"URL elicitation{plural} required" if message is None else message
        super().__init__(URL_ELICITATION_REQUIRED, text, {"elicitations": pages})


class PromptFailedError(MCPError):
    """The function of a prompt has raised an exception, whose text clients do not get."""

    def __init__(self, message: str) -> None:
        super().__init__(INTERNAL_ERROR, message)


def tool_failure(error: Exception, name: str) -> Exception:
    """Return the error with which a call of a tool fails.

    Args:
        error: What the function raised, or why the arguments or the result are not valid.
        name: The tool's name.
    """
    text = f"Error executing tool {name}"
    if isinstance(error, UnexpectedToolError | UnexpectedResourceError):
        return UnexpectedToolError(f"{text}: {text_of(error)}")
    if isinstance(error, NativeToolError | ResourceError | ResourceNotFoundError):
        return ToolError(f"{text}: {text_of(error)}")
    native = as_mcp_error(error)
    return native if isinstance(native, MCPError) else UnexpectedToolError(text)


def resource_failure(error: Exception, uri: str, *, is_template: bool) -> Exception:
    """Return the error with which a read of a resource fails.

    Args:
        error: What the function raised.
        uri: The URI in the request.
        is_template: Whether a template reads the URI.
    """
    if isinstance(error, ResourceError | ResourceNotFoundError):
        return _about(error, uri)
    native = as_mcp_error(error)
    if isinstance(native, MCPError):
        return native
    place = "creating resource from template" if is_template else "reading resource"
    return _about(UnexpectedResourceError(f"Error {place} {uri}"), uri)


def _about(error: ResourceError | ResourceNotFoundError, uri: str) -> MCPError:
    """Return an error with the code and the data that clients of the official SDK get."""
    error.code = INVALID_PARAMS if isinstance(error, ResourceNotFoundError) else INTERNAL_ERROR
    error.data = {"uri": uri}
    return error


def prompt_failure(error: Exception, name: str) -> Exception:
    """Return the error with which a prompt fails."""
    native = as_mcp_error(error)
    return native if isinstance(native, MCPError) else PromptFailedError(f"Error rendering prompt {name}")


def text_of(error: Exception) -> str:
    """Return the text of an exception as its author wrote it."""
    return error.message if isinstance(error, MCPError) else str(error)


def log_crash(failure: Exception, cause: Exception, request: RequestContext) -> None:
    """Write a record about a failure that its author has not anticipated; others are answers, and are not logged.

    Args:
        failure: The error for the client.
        cause: The exception.
        request: The request.
    """
    if isinstance(failure, UnexpectedToolError | UnexpectedResourceError | PromptFailedError):
        feature = "" if request.feature is None else request.feature.key
        log_failure(cause, os.urandom(8).hex(), feature, request.request.method)


def failing_as(
    handler: Callable[..., Any],
    failure_of: Callable[..., Exception],
    report: Callable[[Exception, Exception, RequestContext], None],
) -> Callable[..., Any]:
    """Return the handler of a feature whose exceptions are replaced.

    Args:
        handler: The handler.
        failure_of: Returns the error for the exception and the arguments of the handler.
        report: Gets the error, the exception and the request.
    """

    async def handle(request: RequestContext, *arguments: Any) -> Any:
        try:
            return await handler(request, *arguments)
        except Exception as error:
            failure = failure_of(error, *arguments)
            report(failure, error, request)
            if failure is error:
                raise
            raise failure from error

    return handle


def unknown_resource(uri: str) -> MCPError:
    """Return the error for a URI that no resource reads."""
    return MCPError(INVALID_PARAMS, f"Unknown resource: {uri}", {"uri": uri})
