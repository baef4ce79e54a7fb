"""Exceptions under the names of FastMCP and the official SDK. Clients get the text of all of them."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, NoReturn

from pydantic_core import ValidationError as PydanticError

from funcmcp._authoring.results.sdk_results import is_sdk_type
from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import INTERNAL_ERROR, RESOURCE_NOT_FOUND, MCPError, ResourceNotFound, UnknownFeature
from funcmcp._protocol.errors import ToolError as NativeToolError
from funcmcp._protocol.uri_template import UnsafeValueError
from funcmcp._server.catalog.registry import RegistrationError


@public("funcmcp.compat")
class FastMCPError(Exception):
    """The base class of errors."""


@public("funcmcp.compat")
class ToolError(NativeToolError, FastMCPError):
    """An error for the model: a result of a tool with ``isError: true``.

    Args:
        message: The text for the model.
        log_level: Ignored.
    """

    def __init__(self, message: object = "", *args: object, log_level: int | None = None) -> None:  # noqa: ARG002 - of FastMCP 3
        super().__init__(str(message), *args)


@public("funcmcp.compat")
class ResourceError(MCPError, FastMCPError):
    """A resource can't be read. Clients get a JSON-RPC error with the text."""

    def __init__(self, message: object = "", *_: object, log_level: int | None = None) -> None:  # noqa: ARG002 - of FastMCP 3
        super().__init__(INTERNAL_ERROR, str(message))


@public("funcmcp.compat")
class UnexpectedToolError(ToolError):
    """A tool of the official SDK's server has crashed: clients get the tool's name only."""


@public("funcmcp.compat")
class UnexpectedResourceError(ResourceError):
    """A resource of the official SDK's server has crashed: clients get the URI only."""


@public("funcmcp.compat")
class PromptError(MCPError, FastMCPError):
    """A prompt can't be made. Clients get a JSON-RPC error with the text."""

    def __init__(self, message: object = "", *_: object, log_level: int | None = None) -> None:  # noqa: ARG002 - of FastMCP 3
        super().__init__(INTERNAL_ERROR, str(message))


@public("funcmcp.compat")
class NotFoundError(FastMCPError):
    """A tool, a resource or a prompt does not exist."""


@public("funcmcp.compat")
class ResourceNotFoundError(MCPError, NotFoundError):
    """A resource does not exist. Clients get the JSON-RPC error for it.

    Args:
        message: The text.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(RESOURCE_NOT_FOUND, str(message))


@public("funcmcp.compat")
class ResourceSecurityError(NotFoundError):
    """A variable of a URI has a value that the policy of its template rejects. Clients get "not found"."""


class UnknownFeatureError(NotFoundError, ToolError, ValueError):
    """A tool, prompt or resource that was to be removed does not exist."""


@public("funcmcp.compat")
class InvalidSignature(RegistrationError):
    """The parameters or the annotations of a function can't be used."""


@public("funcmcp.compat")
class DisabledError(FastMCPError):
    """A tool, a resource or a prompt is disabled."""


@public("funcmcp.compat")
class ValidationError(FastMCPError):
    """Arguments are invalid."""


class WrongArgumentsError(ToolError, ValidationError):
    """The arguments of a tool do not fit its parameters."""


@public("funcmcp.compat")
class FastMCPDeprecationWarning(DeprecationWarning):
    """A server uses something that FastMCP will remove."""


@public("funcmcp.compat")
class AuthorizationError(FastMCPError):
    """The caller may not do this."""


@public("funcmcp.compat")
class InsufficientScopeError(AuthorizationError):
    """The caller's token lacks scopes.

    Args:
        required_scopes: The scopes that it lacks.
        message: The text. By default it names the scopes.
    """

    def __init__(self, required_scopes: list[str], *, message: str | None = None) -> None:
        self.required_scopes: list[str] = list(required_scopes)
        super().__init__(message or f"Insufficient scope. Required: {', '.join(required_scopes) or '(unknown)'}")


@public("funcmcp.compat")
class McpError(MCPError):
    """A JSON-RPC error.

    Args:
        error: The error: an ``ErrorData`` object of the official SDK, or the code.
        message: The message, if there is a code.
        data: Details, if there is a code.
        code: The code, by name.
    """

    def __init__(
        self, error: Any = None, message: str | None = None, data: object = None, *, code: int | None = None
    ) -> None:
        if error is None:
            error = code
        if isinstance(error, int):
            super().__init__(error, message or "", data)
        elif error is None:
            raise TypeError("McpError needs the code of the error. Write McpError(code=-32000, message='...').")
        else:
            super().__init__(error.code, error.message, error.data)

    @property
    def error(self) -> McpError:
        """The error with its code, message and data."""
        return self


@cache
def _error_of_sdk(base: type[Exception]) -> type[McpError]:
    """Return a class of errors that ``except`` clauses for a class of the official SDK catch as well."""

    class SDKError(McpError, base):  # type: ignore[misc, valid-type] # the class is chosen at run time
        code: int = 0
        message: str = ""
        data: object = None

        def __init__(self, code: int, message: str) -> None:
            Exception.__init__(self, message)
            self.code, self.message = code, message

    SDKError.__name__ = SDKError.__qualname__ = base.__name__
    return SDKError


def mcp_error(code: int, message: str) -> McpError:
    """Return a JSON-RPC error. If the program has loaded the official SDK, it is an error of the SDK, too."""
    module = sys.modules.get("mcp.shared.exceptions")
    base = getattr(module, "MCPError", None) or getattr(module, "McpError", None)
    return McpError(code, message) if base is None else _error_of_sdk(base)(code, message)


def is_mcp_error(error: BaseException) -> bool:
    """Return whether an exception is a JSON-RPC error, of funcmcp or of the official SDK."""
    return isinstance(error, MCPError) or (is_sdk_type(type(error)) and hasattr(error, "error"))


class MissingFeatureError(McpError, NotFoundError):
    """A request names a tool, a resource or a prompt that does not exist. Clients get the JSON-RPC error for it."""


class RejectedURIError(McpError, ResourceSecurityError):
    """A request names a URI that a template rejects. Clients get the JSON-RPC error of a missing resource."""


def as_fastmcp_error(error: MCPError, failure: BaseException | None) -> MCPError:
    """Return the error of a request, caused by *failure*, as FastMCP's NotFoundError if its feature does not exist."""
    if failure is not None and isinstance(failure.__cause__, UnsafeValueError):
        return RejectedURIError(error.code, error.message, error.data)
    if isinstance(failure, UnknownFeature | ResourceNotFound | NotFoundError):
        return MissingFeatureError(error.code, error.message, error.data)
    return error


def raise_as_fastmcp(error: MCPError, failure: BaseException | None) -> NoReturn:
    """Raise the error of a request as FastMCP's.

    Args:
        error: The error.
        failure: What it was caused by: itself, if it is an error of FastMCP already.
    """
    if isinstance(failure, ResourceError | PromptError):
        raise failure
    raise as_fastmcp_error(error, failure) from failure


def without_pydantic(error: Exception) -> Exception:
    """Return an exception that clients may read for one of pydantic's, whose text has values and URLs.

    Other exceptions are returned unchanged.
    """
    if not isinstance(error, PydanticError):
        return error
    from funcmcp._authoring.schemas.argument_errors import validation_errors, wrong_arguments  # noqa: PLC0415 - for errors only

    values: dict[Any, Any] = {}
    for detail in error.errors(include_url=False):
        place = values
        for part in detail["loc"][:-1]:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                break
        else:
            place.update(dict.fromkeys(detail["loc"][-1:], detail["input"]))
    problems = wrong_arguments(validation_errors(error, values))
    return ValueError(f"There is a validation error in {error.title}:\n{problems}")
