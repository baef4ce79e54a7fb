"""Requests and answers of the proxy, without the HTTP of a platform: parameters, cookies, redirects, JSON.

Source: RFC 6749 sections 3.1 and 3.2 (a parameter occurs once; one without a value is omitted), 4.1.2 and 5.1
(answers); RFC 6265bis section 4.1.3 (cookies with the prefix ``__Host-``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlencode

from funcmcp._protocol.codec import encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_QUERY = 8 * 1024
"""Maximum number of characters of a query."""

MAX_BODY = 16 * 1024
"""Maximum number of bytes of a body."""

_MAX_PARAMETERS = 100
_FORM = "application/x-www-form-urlencoded"
JSON = ("content-type", "application/json")
NOT_STORED = ("cache-control", "no-store")
_REFERRER = ("referrer-policy", "no-referrer")


class WebRequest(NamedTuple):
    """A request to an endpoint of the proxy.

    Attributes:
        method: The method, in upper case.
        path: The path.
        query: The query, percent-encoded.
        headers: Header values by name in lower case.
        body: The body.
        caller: The address from which the request comes, or a mark of it; "" if unknown.
        server: The name of the server, for people.
        icons: The icons of the server, as the specification's Icon objects.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes
    caller: str
    server: str
    icons: Sequence[Mapping[str, Any]] = ()

    def __repr__(self) -> str:
        return f"WebRequest({self.method!r}, {self.path!r}, ...)"


class WebAnswer(NamedTuple):
    """The answer to a request."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""

    def with_headers(self, *headers: tuple[str, str]) -> WebAnswer:
        """Return the answer with more header fields."""
        return WebAnswer(self.status, (*self.headers, *headers), self.body)


class ParametersError(ValueError):
    """Parameters are malformed. The text is a sentence for developers, without any value."""


class OAuthError(Exception):
    """A request of a client is refused. The text is a sentence for developers, without any value.

    Attributes:
        error: The error code of OAuth.
        nonce: The nonce that the proof of the next request must have; None if it needs none.
    """

    def __init__(self, error: str, description: str, nonce: str | None = None) -> None:
        super().__init__(description)
        self.error = error
        self.nonce = nonce


class Parameters:
    """The parameters of a query or of a form.

    Args:
        encoded: The parameters, percent-encoded.

    Attributes:
        resources: The values of ``resource``, the only parameter that may occur more than once (RFC 8707 section 2).

    Raises:
        ParametersError: A parameter is repeated, is not UTF-8, or there are too many.
    """

    def __init__(self, encoded: str) -> None:
        try:
            pairs = parse_qsl(encoded, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS)
        except ValueError:
            raise ParametersError("The parameters are malformed.") from None
        self.resources: tuple[str, ...] = tuple(value for name, value in pairs if name == "resource" and value)
        self._values: dict[str, str] = {}
        for name, value in pairs:
            if name in self._values and name != "resource":
                raise ParametersError("A parameter is repeated.")
            self._values[name] = value

    def get(self, name: str) -> str | None:
        """Return the value of a parameter; None if it is missing or empty."""
        return self._values.get(name) or None

    def words(self, name: str) -> list[str]:
        """Return the words of a parameter whose value is a list, such as ``scope``."""
        return [word for word in self._values.get(name, "").split(" ") if word]


def form_of(request: WebRequest) -> Parameters:
    """Return the parameters of a form; raise ParametersError if the body is not one."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip(" \t").lower()
    if kind != _FORM:
        raise ParametersError(f"Send Content-Type: {_FORM}.")
    try:
        return Parameters(request.body.decode("ascii"))
    except UnicodeDecodeError:
        raise ParametersError("The form is not percent-encoded.") from None


def cookies_of(request: WebRequest) -> dict[str, str]:
    """Return the cookies by name. A name that occurs twice is left out: one of the two may be another site's."""
    cookies: dict[str, str] = {}
    repeated: set[str] = set()
    for pair in request.headers.get("cookie", "").split(";"):
        name, separator, value = pair.strip(" \t").partition("=")
        if name in cookies:
            repeated.add(name)
        if separator:
            cookies[name] = value
    return {name: value for name, value in cookies.items() if name not in repeated}


def json_answer(status: int, value: Mapping[str, object], *headers: tuple[str, str]) -> WebAnswer:
    """Return JSON that no cache stores."""
    return WebAnswer(status, (JSON, NOT_STORED, *headers), encode(value))


def error_answer(status: int, error: str, description: str, *headers: tuple[str, str]) -> WebAnswer:
    """Return an error of an endpoint for clients (RFC 6749 section 5.2, RFC 7591 section 3.2.2)."""
    return json_answer(status, {"error": error, "error_description": description}, *headers)


def redirect(status: int, uri: str, parameters: Mapping[str, str | None], *headers: tuple[str, str]) -> WebAnswer:
    """Return a redirect of the browser.

    Args:
        status: 302, or 303 after a POST.
        uri: The address, which may have a query.
        parameters: Parameters to add to its query. Those without a value are left out.
        headers: More header fields.
    """
    query = urlencode({name: value for name, value in parameters.items() if value is not None}, quote_via=quote)
    if query:
        uri = f"{uri}{'&' if '?' in uri else '?'}{query}"
    return WebAnswer(status, (("location", uri), NOT_STORED, _REFERRER, *headers))
