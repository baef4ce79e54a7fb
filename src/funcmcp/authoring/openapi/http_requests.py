"""Tools that call HTTP code in their own process: texts for requests, and results from responses.

What a model sends never decides where a request goes: a value fills one segment of the path, or one query parameter.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from funcmcp.authoring.values.content import Audio, EmbeddedResource, Image, ToolResult
from funcmcp.protocol.codec import InvalidJSONError, decode, encode
from funcmcp.protocol.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from funcmcp.authoring.calling.feature_context import ToolContext
    from funcmcp.authoring.values.content import Content

_RESERVED = frozenset(
    {
        *("accept", "authorization", "content-type"),  # OpenAPI: such parameters "SHALL be ignored"
        *("connection", "content-length", "cookie", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade"),
        *("date", "keep-alive", "origin", "referer", "user-agent", "via"),  # who sends it, and over what
        *("forwarded", "x-original-host", "x-original-url", "x-rewrite-url"),
        *("remote-addr", "remote-user", "remote-groups", "remote-email", "remote-name"),  # from CGI's REMOTE_USER
        *("x-access-token", "x-api-key", "x-apikey", "x-auth-token", "x-csrf-token", "x-functions-key", "x-jwt"),
        *("x-arr-clientcert", "x-arr-ssl", "x-site-deployment-id", "x-appservice-proto"),  # Azure App Service
        *("x-http-method", "x-http-method-override", "x-method-override"),
        *("x-remote-user", "x-user", "x-username", "x-userid", "x-user-id", "x-user-email", "x-email", "x-groups"),
        *(
            "x-auth",
            "x-amz-security-token",
            "x-original-user",
            "x-principal",
            "x-roles",
            "x-scheme",
            "x-scope-orgid",
            "x-session",
        ),
        *("x-user-name", "x-user-roles", "x-zumo-auth"),
        *("x-webauth-user", "x-webauth-email", "x-webauth-groups", "api-key", "x-xsrf-token"),
    }
)
_RESERVED_BEGINNINGS = (
    *("proxy-", "sec-"),  # a browser's and a proxy's own
    *("client-cert", "client-ip", "ssl-", "tls-", "x-client-cert", "x-client-dn", "x-client-ip", "x-client-verify"),
    *("x-ssl-", "x-tls-", "x-subject-"),  # certificates, and addresses of clients
    *("cf-", "true-client-", "fastly-", "x-real-", "x-forwarded", "x-original-forwarded-", "x-cluster-client-"),
    *("x-envoy-", "x-azure-", "x-amzn-", "x-goog-", "x-ms-client-principal", "x-ms-token-", "x-appengine-"),
    *(
        "impersonate-",
        "x-auth-",
        "x-authent",
        "x-authoriz",
        "x-hasura-",
        "x-identity-",
        "x-pomerium-",
        "x-remote-",
        "x-vouch-",
    ),
    *("x-token", "x-jwt-", "x-endpoint-api-", "x-consumer-", "x-credential-", "x-anonymous-consumer"),
    *("remote-", "oidc-", "saml-", "mellon-", "shib-", "authentik-", "tailscale-user-", "x-tailscale-user-"),
)
"""Headers in which proxies and platforms say who the client is and how it came: nginx, HAProxy, Apache, Envoy,
oauth2-proxy, Authelia, authentik, Pomerium, Vouch, Kong, Cloudflare, Akamai, Fastly, AWS, Google Cloud, Azure,
Tailscale."""

_SEPARATORS = re.compile("[^a-z0-9]+")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_EXACT = 2**53
_TEXTS = ("application/xml", "application/javascript", "application/yaml", "application/x-ndjson")
_MOST_ERROR_CHARACTERS = 4000


class Response(NamedTuple):
    """A whole response.

    Attributes:
        status: the status code.
        content_type: the value of the header, or "".
        body: all of it.
    """

    status: int
    content_type: str
    body: bytes


def text_of(value: Any) -> str:
    """Return a JSON value as a text for a path, a query or a header."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)  # JSON has one type of number: 5.0 is what a client may write for 5
    return encode(value).decode()


def path_text(name: str, value: Any, *, rest: bool = False) -> str:
    """Return a value as it stands in a path, percent-encoded.

    Args:
        name: the argument's name.
        value: the value.
        rest: whether it fills all the rest of the path, and may have slashes.

    Raises:
        ToolError: it would lead elsewhere.
    """
    text = text_of(value)
    segments = text.split("/") if rest else [text]
    if any(segment in {"", ".", ".."} or not _stays(segment) for segment in segments):
        words = (
            "no empty parts, and none that is '.' or '..'"
            if rest
            else "not empty, not '.' or '..', and without slashes"
        )
        raise ToolError(f"{name}: must be {'the rest' if rest else 'a part'} of a path: {words}")
    return "/".join(quote(segment, safe="") for segment in segments)


def written_path(path: str) -> str:
    """Return a path whose variables are filled in as a URL has it: what the author wrote may be any text."""
    return quote(path, safe="/%:@!$&'()*+,;=~")


def _stays(segment: str) -> bool:
    return not any(character in "/\\\x7f" or character < " " for character in segment)


def header_key(name: str) -> str:
    """Return a header's name for comparisons.

    Other characters than letters and digits count as one hyphen, and none at the ends: WSGI and CGI make one variable
    of hyphens and underscores, and some servers of dots too.
    """
    return _SEPARATORS.sub("-", name.lower()).strip("-")


def is_header_name(name: str) -> bool:
    """Return whether a text is a header's name (RFC 9110, section 5.6.2)."""
    return _TOKEN.fullmatch(name) is not None


def is_reserved(header: str) -> bool:
    """Return whether a header says who sends a request, or how: then no model may choose it."""
    key = header_key(header)
    return key in _RESERVED or key.startswith(_RESERVED_BEGINNINGS)


def header_text(name: str, value: Any) -> str:
    """Return a value as it stands in a header; raise ToolError if no header can have it."""
    text = text_of(value)
    if any(character < " " or character > "~" for character in text):
        raise ToolError(f"{name}: must be a text of ASCII characters without line breaks")
    return text


def forwarded(context: ToolContext, names: Iterable[str]) -> dict[str, str]:
    """Return those headers of the MCP request that go along with the call, as far as it has them."""
    request = context.http_request
    return {} if request is None else {name: request.headers[name] for name in names if name in request.headers}


def result_of(response: Response, tool: str) -> ToolResult:
    """Return what a response says as a tool's result.

    JSON becomes structured content, other texts a text, images and sounds what they are, and the rest an embedded
    resource. A status of 300 and above is an error, with the response's text.
    """
    status, _, body = response
    media, charset = _media(response.content_type)
    if status >= HTTPStatus.MULTIPLE_CHOICES:
        return ToolResult(_failure(status, media, body, charset), is_error=True)
    if not body:
        return ToolResult()
    if media == "application/json" or media.endswith("+json"):
        try:
            value = decode(body)
        except InvalidJSONError:
            return ToolResult(body.decode(charset, "replace"))
        return ToolResult(structured_content=value) if isinstance(value, dict | list) else ToolResult(text_of(value))
    if _is_text(media):
        return ToolResult(body.decode(charset, "replace"))
    return ToolResult([_binary(media, body, tool)])


def _media(content_type: str) -> tuple[str, str]:
    """Return a content type's media type and its charset, UTF-8 unless Python knows the one that it names."""
    media, _, parameters = content_type.partition(";")
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip('"')
            try:
                b"\xff".decode(charset, "replace")
            except (LookupError, ValueError):
                break  # Python has none of that name, or one that is for something else, such as idna
            return media.strip().lower(), charset
    return media.strip().lower(), "utf-8"


def _is_text(media: str) -> bool:
    return media.startswith("text/") or media in _TEXTS or media.endswith("+xml")


def _failure(status: int, media: str, body: bytes, charset: str) -> str:
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else ""
    words = f"HTTP {status} {phrase}".strip()
    if not body or not (_is_text(media) or media.endswith("json")):
        return words
    return f"{words}: {body.decode(charset, 'replace')[:_MOST_ERROR_CHARACTERS]}"


def _binary(media: str, body: bytes, tool: str) -> Content:
    if media.startswith("image/") and not media.endswith("+xml"):
        return Image(body, mime_type=media)
    if media.startswith("audio/"):
        return Audio(body, mime_type=media)
    return EmbeddedResource(f"tool://{tool}/result", blob=body, mime_type=media or "application/octet-stream")
