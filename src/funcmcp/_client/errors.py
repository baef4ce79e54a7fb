"""Exceptions of the client.

An error that the server reports in a JSON-RPC response is `funcmcp.MCPError`. All other failures of a request are a
`ClientError`: the server cannot be reached, or it sends something that is not MCP.
"""

from __future__ import annotations

from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import ClientError, InvalidResponseError
from funcmcp._text.visible import visible_line


@public("funcmcp.client")
class ConnectionFailedError(ClientError):
    """The server cannot be reached or started, or the connection ended before the response.

    Attributes:
        was_sent: Whether the server may have received the request.
    """

    def __init__(self, message: str, *, was_sent: bool = True) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class TooLargeError(ConnectionFailedError):
    """A response has more bytes than the endpoint's options allow, so the rest of it was not read."""


@public("funcmcp.client")
class AuthenticationError(ClientError):
    """The server rejected the credentials, or requires some: HTTP status 401, or 403 with a challenge.

    Attributes:
        status: The HTTP status, 401 or 403.
        challenge: The value of the response's WWW-Authenticate header. None if the server sent none.
    """

    def __init__(self, status: int, challenge: str | None) -> None:
        if status == _UNAUTHORIZED:
            problem = "The server requires valid credentials"
        else:
            problem = "The server denies access with these credentials"
        details = "" if challenge is None else f": {one_line(challenge)}"
        super().__init__(f"{problem} (HTTP status {status}){details}")
        self.status = status
        self.challenge = challenge


class HTTPStatusError(InvalidResponseError):
    """The HTTP status of a response is an error, and its body is not an MCP message.

    Attributes:
        status: The status.
        retry_after: The seconds after which the server wants the request again; None if it does not say so.
    """

    def __init__(self, message: str, status: int, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


@public("funcmcp.client")
class SignInError(ClientError):
    """The user could not be signed in: the authorization server can't be used, or it or the user has refused."""


@public("funcmcp.client")
class SessionEndedError(ClientError):
    """The server no longer has the session (HTTP status 404).

    The client starts a new session by itself, once for each request. It raises this error if the server ends that
    session as well, and for a notification.
    """

    def __init__(self) -> None:
        super().__init__("The server has ended the session (HTTP status 404). Connect again.")


@public("funcmcp.client")
class TaskCancelledError(ClientError):
    """The task of a call was cancelled, by this client or by another one."""

    def __init__(self) -> None:
        super().__init__("The task was cancelled.")


@public("funcmcp.client")
class RequestTimeoutError(ClientError, TimeoutError):
    """The server did not respond in time. The client has cancelled the request."""


def one_line(value: object, limit: int = 200) -> str:
    """Return the text of a value that a server sent: on one line, escaped, and shortened to *limit* characters."""
    text = visible_line(" ".join(str(value).split()))
    if len(text) > limit:
        return f"{text[:limit]}..."
    return text


_UNAUTHORIZED = 401
