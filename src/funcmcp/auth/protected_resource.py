"""What a server says about how to be let in: its metadata, and the challenge that leads there.

Source: RFC 9728 sections 2, 3.1 and 5.1 (metadata, where it is, `resource_metadata`), RFC 6750 section 3 (the challenge
and its quoting); MCP "basic/authorization" ("Protected Resource Metadata Discovery", "Scope Challenge Handling").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funcmcp.auth.authenticator import fit
from funcmcp.auth.scopes import distinct
from funcmcp.auth.urls import checked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from funcmcp.auth.authenticator import Challenge

WELL_KNOWN = "/.well-known/oauth-protected-resource"
_NEVER_ASKED_FOR = "offline_access"  # it is between a client and its authorization server


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedResource:
    """Metadata of a server that wants tokens.

    Attributes:
        resource: the server's own URL, as clients know it and as the audience of tokens names it.
        authorization_servers: issuers whose tokens are accepted, at least one.
        scopes: the scopes that callers can ask for.
        name: what to call the server where people read it.
        documentation: URL of a page for developers.
        served_at: the URL of this metadata, where the server can't have it in the usual place below its root.
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
            checked("The metadata's place", self.served_at)
        distinct(self.scopes)

    @property
    def document(self) -> dict[str, Any]:
        """The metadata document, to be served as application/json."""
        members = {
            "resource": self.resource,
            "authorization_servers": list(self.authorization_servers),
            "scopes_supported": [scope for scope in self.scopes if scope != _NEVER_ASKED_FOR],
            "bearer_methods_supported": ["header"],
            "resource_name": self.name,
            "resource_documentation": self.documentation,
        }
        return {name: value for name, value in members.items() if value}

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths at which the document is: with the resource's own path, and without it for clients that guess."""
        path = checked("The resource", self.resource).path
        own = "" if path == "/" else path  # only a slash that follows the host goes away (RFC 9728 section 3.1)
        return tuple(dict.fromkeys([WELL_KNOWN + own, WELL_KNOWN + own.rstrip("/"), WELL_KNOWN]))

    @property
    def metadata_url(self) -> str:
        """The document's absolute URL, made from configuration alone and from nothing that a request says."""
        if self.served_at is not None:
            return self.served_at
        parts = checked("The resource", self.resource)
        query = f"?{parts.query}" if parts.query else ""
        return f"{parts.scheme}://{parts.netloc}{self.paths[0]}{query}"


def unauthorized(challenge: Challenge | None, *, metadata_url: str | None = None, scopes: Iterable[str] = ()) -> str:
    """Return the WWW-Authenticate value of a 401, or of a 400 for an invalid request.

    Args:
        challenge: why the credentials were refused; None where none came: then it says nothing of an error.
        metadata_url: where the metadata is.
        scopes: what the caller needs for what it asked.
    """
    error = None if challenge is None else challenge.error
    description = None if challenge is None else challenge.description
    return _bearer(error, description, metadata_url, scopes)


def insufficient_scope(
    scopes: Iterable[str], *, metadata_url: str | None = None, description: str = "More scopes are needed."
) -> str:
    """Return the WWW-Authenticate value of a 403 for a caller that lacks scopes.

    Args:
        scopes: all that are needed for what was asked, those included that the caller has already: a client asks for
            exactly these, and would otherwise lose the others.
        metadata_url: where the metadata is.
        description: what is missing, in a sentence for developers.
    """
    return _bearer("insufficient_scope", description, metadata_url, scopes)


def _bearer(error: str | None, description: str | None, metadata_url: str | None, scopes: Iterable[str]) -> str:
    wanted = " ".join(scope for scope in distinct(scopes) if scope != _NEVER_ASKED_FOR)
    if metadata_url is not None:
        checked("The metadata's place", metadata_url)
    parameters = {
        "error": error,
        "error_description": None if description is None else fit(description),
        "scope": wanted,
        "resource_metadata": metadata_url,
    }
    said = [f'{name}="{value}"' for name, value in parameters.items() if value]
    return f"Bearer {', '.join(said)}" if said else 'Bearer realm="mcp"'  # a challenge has at least one parameter
