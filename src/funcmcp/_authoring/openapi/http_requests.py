"""Parts of HTTP requests from arguments of tools: path segments, texts and headers.

Arguments never choose the target of a request: a value fills one segment of the path, one query parameter or one
header, and headers in which proxies and platforms identify the client are not arguments.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from funcmcp._authoring.calling.feature_context import Context

_RESERVED = frozenset(
    {
        *("accept", "authorization", "content-type"),  # OpenAPI: such parameters "SHALL be ignored"
        *("connection", "content-length", "cookie", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade"),
        *("date", "keep-alive", "origin", "referer", "user-agent", "via"),  # the client and the connection
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
    *("proxy-", "sec-"),  # set by browsers and proxies
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
"""Headers in which proxies and platforms identify the client and its connection: nginx, HAProxy, Apache, Envoy,
oauth2-proxy, Authelia, authentik, Pomerium, Vouch, Kong, Cloudflare, Akamai, Fastly, AWS, Google Cloud, Azure,
Tailscale."""

_SEPARATORS = re.compile("[^a-z0-9]+")
_EXACT = 2**53
_MAX_DECODINGS = 5


def text_of(value: Any) -> str:
    """Return a JSON value as a text for a path, a query or a header."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        value = int(value)  # JSON has one type of number, so a client may write 5.0 for 5
    return encode(value).decode()


def path_text(name: str, value: Any, *, many_segments: bool = False) -> str:
    """Return a value for a path, percent-encoded.

    Args:
        name: The argument's name, for errors.
        value: The value.
        many_segments: Whether it may have several segments, separated by slashes.

    Raises:
        ToolError: The value would change the path's structure.
    """
    text = text_of(value)
    segments = text.split("/") if many_segments else [text]
    if not all(map(_is_segment, segments)):
        if many_segments:
            raise ToolError(f"{name}: must be segments of a path, of which none is empty, '.' or '..'")
        raise ToolError(f"{name}: must be a segment of a path: not empty, not '.' or '..', and without slashes")
    return "/".join(quote(segment, safe="") for segment in segments)


def written_path(path: str) -> str:
    """Return a path, in which variables are replaced, percent-encoded. The author's parts may be any text."""
    return quote(path, safe="/%:@!$&'()*+,;=~")


def _is_segment(text: str) -> bool:
    """Return whether a text is one segment of a path, and not empty, "." or "..", also if it is decoded twice."""
    if _decoded(text) in {"", ".", ".."}:
        return False
    return not any(character in "/\\\x7f" or character < " " for character in text)


def _decoded(text: str) -> str:
    """Return a text after further percent-decodings, which a server may do by mistake: %252e%252e becomes two dots."""
    for _ in range(_MAX_DECODINGS):
        decoded = unquote(text)
        if decoded == text:
            break
        text = decoded
    return text.strip("/")


def header_key(name: str) -> str:
    """Return a header's name for comparisons.

    A run of other characters than letters and digits becomes one hyphen, and is removed at the ends: WSGI and CGI do
    not distinguish hyphens and underscores, and some servers treat dots in the same way.
    """
    return _SEPARATORS.sub("-", name.lower()).strip("-")


def is_reserved(header: str) -> bool:
    """Return whether a header identifies the client or its connection, so that a model must not choose it."""
    key = header_key(header)
    return key in _RESERVED or key.startswith(_RESERVED_BEGINNINGS)


def header_text(name: str, value: Any) -> str:
    """Return a value for a header. Raise ToolError if a header can't contain it."""
    text = text_of(value)
    if any(character < " " or character > "~" for character in text):
        raise ToolError(f"{name}: must be a text of ASCII characters without line breaks")
    return text


def forwarded(context: Context, names: Iterable[str]) -> dict[str, str]:
    """Return the headers of the MCP request with certain names."""
    request = context.http_request
    if request is None:
        return {}
    return {name: request.headers[name] for name in names if name in request.headers}
