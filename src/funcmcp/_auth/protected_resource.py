"""The metadata of a protected resource, and challenges that refer to it.

Source: RFC 9728 sections 2, 3.1 and 5.1 (the metadata, its URL, `resource_metadata`), RFC 6750 section 3 (the challenge
and its quoting); MCP "basic/authorization" ("Protected Resource Metadata Discovery", "Scope Challenge Handling").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funcmcp._auth.access import distinct
from funcmcp._auth.authenticator import to_description
from funcmcp._auth.urls import checked
from funcmcp._auth.well_known import WELL_KNOWN
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from funcmcp._auth.authenticator import Challenge

_CLIENT_SCOPE = "offline_access"  # a matter of the client and its authorization server


@public("funcmcp.auth")
@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedResource:
    """Metadata of a server that requires tokens.

    Attributes:
        resource: The public URL of the server. It is also the audience of tokens.
        authorization_servers: Issuers of accepted tokens, at least one.
        scopes: Scopes that clients can request.
        name: A name of the server for people to read.
        documentation: The URL of a page for developers.
        served_at: The URL of the metadata, if the server can't serve them at the well-known path below its root.
    """

    resource: str
    authorization_servers: Sequence[str]
    scopes: Sequence[str] = ()
    name: str | None = None
    documentation: str | None = None
    served_at: str | None = None

    def __post_init__(self) -> None:
        checked("The resource", self.resource)
        for name in ("authorization_servers", "scopes"):
            if isinstance(getattr(self, name), str):
                raise TypeError(f"ProtectedResource.{name} is a list of strings, not one string.")
        if not self.authorization_servers:
            raise ValueError("ProtectedResource needs at least one authorization server.")
        for server in self.authorization_servers:
            checked("An authorization server", server)
        if self.documentation is not None:
            checked("The documentation", self.documentation)
        if self.served_at is not None:
            checked("The metadata URL", self.served_at)
        distinct(self.scopes)

    @property
    def document(self) -> dict[str, Any]:
        """The metadata document, for a response of type application/json."""
        members = {
            "resource": self.resource,
            "authorization_servers": list(self.authorization_servers),
            "scopes_supported": [scope for scope in self.scopes if scope != _CLIENT_SCOPE],
            "bearer_methods_supported": ["header"],
            "resource_name": self.name,
            "resource_documentation": self.documentation,
        }
        return {name: value for name, value in members.items() if value}

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the document: with the path of the resource, and without it for clients that guess."""
        path = checked("The resource", self.resource).path
        suffix = "" if path == "/" else path  # RFC 9728 section 3.1 removes a slash only behind the host
        return tuple(dict.fromkeys([WELL_KNOWN + suffix, WELL_KNOWN + suffix.rstrip("/"), WELL_KNOWN]))

    @property
    def metadata_url(self) -> str:
        """The absolute URL of the document. It depends on the configuration only, never on a request."""
        if self.served_at is not None:
            return self.served_at
        parts = checked("The resource", self.resource)
        query = f"?{parts.query}" if parts.query else ""
        return f"{parts.scheme}://{parts.netloc}{self.paths[0]}{query}"


@public("funcmcp.auth")
def unauthorized(challenge: Challenge | None, *, metadata_url: str | None = None, scopes: Iterable[str] = ()) -> str:
    """Return the WWW-Authenticate value of a 401, or of a 400 for an invalid request.

    Args:
        challenge: The reason why the credentials are invalid. None: there are none, and the value has no error.
        metadata_url: The URL of the metadata.
        scopes: Scopes that the request needs.
    """
    if challenge is None:
        return _bearer(None, None, metadata_url, scopes)
    return _bearer(challenge.error, challenge.description, metadata_url, scopes)


def insufficient_scope(
    scopes: Iterable[str], *, metadata_url: str | None = None, description: str = "More scopes are needed."
) -> str:
    """Return the WWW-Authenticate value of a 403 for a caller that lacks scopes.

    Args:
        scopes: All scopes that the request needs, including those that the caller has. A client requests exactly these,
            and would lose any other.
        metadata_url: The URL of the metadata.
        description: The reason as a sentence for developers.
    """
    return _bearer("insufficient_scope", description, metadata_url, scopes)


def _bearer(error: str | None, description: str | None, metadata_url: str | None, scopes: Iterable[str]) -> str:
    required = " ".join(scope for scope in distinct(scopes) if scope != _CLIENT_SCOPE)
    if metadata_url is not None:
        checked("The metadata URL", metadata_url)
    parameters = {
        "error": error,
        "error_description": None if description is None else to_description(description),
        "scope": required,
        "resource_metadata": metadata_url,
    }
    texts = [f'{name}="{value}"' for name, value in parameters.items() if value]
    if not texts:
        return 'Bearer realm="mcp"'  # a challenge has at least one parameter
    return f"Bearer {', '.join(texts)}"
