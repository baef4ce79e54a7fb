"""OpenAPI documents: their version, and the URLs of their servers.

A document may come from others, so nothing in it is trusted: references to other documents are never followed, and what
it names as its server is compared by the caller with what the author has named.

Source: OpenAPI 3.0.4 and 3.1.1, "OpenAPI Object", "Server Object"; Swagger 2.0, "Swagger Object".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urljoin, urlsplit

from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    Dialect: TypeAlias = Literal["2.0", "3.0", "3.1"]

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_AUTHORITY = re.compile(r"[\w.:\[\]-]+")
"""A host with a port, without credentials, and without characters that parsers of URLs read differently."""

_PORTS = {"http": 80, "https": 443}


def dialect_of(document: Mapping[str, Any]) -> Dialect:
    """Return the version of a document's rules. Raise RegistrationError if it is not an OpenAPI document."""
    version = document.get("openapi")
    if isinstance(version, str) and version.startswith("3."):
        return "3.0" if version.startswith("3.0") else "3.1"
    if str(document.get("swagger")) == "2.0":
        return "2.0"
    raise RegistrationError(
        "The document is not OpenAPI 3 or Swagger 2.0, which have the version in a member `openapi` or `swagger`."
    )


def title_of_document(document: Mapping[str, Any]) -> str:
    """Return a document's title, or "" if it has none."""
    info = document.get("info")
    title = info.get("title") if isinstance(info, dict) else None
    return title.strip() if isinstance(title, str) else ""


def server_url(document: Mapping[str, Any], servers: Sequence[Any], document_url: str | None) -> str | None:
    """Return the URL of the first server, with the defaults of its variables.

    Args:
        document: The document.
        servers: The servers of an operation or a path; none for those of the document.
        document_url: Where the document is from, if it is from a URL. Relative URLs are relative to it.

    Returns:
        An absolute URL without a slash at its end; None if the document has none.
    """
    if dialect_of(document) == "2.0":
        url = _url_of_2_0(document, document_url)
    else:
        listed = servers or document.get("servers") or [{"url": "/"}]
        server = listed[0] if isinstance(listed, list) else None
        url = _with_defaults(server) if isinstance(server, dict) else ""
    if document_url is not None:
        url = urljoin(document_url, url)
    is_base = origin_of(url) is not None and not set(url) & set("?#{}")
    return url.rstrip("/") if is_base else None


def _with_defaults(server: Mapping[str, Any]) -> str:
    variables = server.get("variables")

    def default(match: re.Match[str]) -> str:
        variable = variables.get(match[1]) if isinstance(variables, dict) else None
        return str(variable.get("default", "")) if isinstance(variable, dict) else match[0]

    return _VARIABLE.sub(default, str(server.get("url", "")))


def _url_of_2_0(document: Mapping[str, Any], document_url: str | None) -> str:
    host, base_path = document.get("host"), document.get("basePath") or "/"
    if not host:
        return str(base_path)
    schemes = document.get("schemes") or []
    scheme = urlsplit(document_url or "").scheme or "https"
    if schemes and scheme not in schemes:
        scheme = "https" if "https" in schemes else str(schemes[0])
    return f"{scheme}://{host}{base_path}"


def origin_of(url: str) -> tuple[str, str, int] | None:
    """Return the scheme, host and port of a URL; None if it is not an absolute URL of HTTP without credentials."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or not _AUTHORITY.fullmatch(parts.netloc):
        return None
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]
