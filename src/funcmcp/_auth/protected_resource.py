"""The metadata of a protected resource, and challenges that refer to it.

Source: RFC 9728 sections 2, 3.1 and 5.1 (the metadata, its URL, `resource_metadata`), RFC 6750 section 3 (the challenge
and its quoting), RFC 9449 sections 7.1 and 7.2 (the scheme DPoP); MCP "basic/authorization" ("Protected Resource
Metadata Discovery", "Scope Challenge Handling").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from funcmcp._auth.access import distinct
from funcmcp._auth.authenticator import to_description
from funcmcp._auth.dpop import PROOF_ALGORITHMS, checked_dpop
from funcmcp._auth.urls import checked
from funcmcp._auth.well_known import WELL_KNOWN
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from funcmcp._auth.authenticator import Challenge
    from funcmcp._auth.dpop import DPoP

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
        dpop: Whether tokens that are bound to a key (RFC 9449) are taken beside others, or are the only ones. `Auth`
            sets it for authenticators that it knows, such as `BearerTokens`.
    """

    resource: str
    authorization_servers: Sequence[str]
    scopes: Sequence[str] = ()
    name: str | None = None
    documentation: str | None = None
    served_at: str | None = None
    dpop: DPoP | None = None

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
        checked_dpop("ProtectedResource", self.dpop)
        distinct(self.scopes)

    @property
    def document(self) -> dict[str, Any]:
        """The metadata document, for a response of type application/json."""
        members: dict[str, Any] = {
            "resource": self.resource,
            "authorization_servers": list(self.authorization_servers),
            "scopes_supported": [scope for scope in self.scopes if scope != _CLIENT_SCOPE],
            "bearer_methods_supported": ["header"],
            "resource_name": self.name,
            "resource_documentation": self.documentation,
        }
        document = {name: value for name, value in members.items() if value}
        if self.dpop is not None:
            document["dpop_signing_alg_values_supported"] = list(PROOF_ALGORITHMS)
            document["dpop_bound_access_tokens_required"] = self.dpop == "required"
        return document

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
def unauthorized(
    challenge: Challenge | None,
    *,
    metadata_url: str | None = None,
    scopes: Iterable[str] = (),
    dpop: DPoP | None = None,
) -> str:
    """Return the WWW-Authenticate value of a 401, or of a 400 for an invalid request.

    Args:
        challenge: The reason why the credentials are invalid. None: there are none, and the value has no error.
        metadata_url: The URL of the metadata.
        scopes: Scopes that the request needs.
        dpop: Whether tokens that are bound to a key are taken. Then the value has a challenge with the scheme DPoP,
            and one with the scheme Bearer unless they are required.
    """
    value = _Value(metadata_url, scopes)
    if challenge is None:
        return value.text(dpop, {})
    return value.text(dpop, {challenge.scheme: (challenge.error, challenge.description)})


def insufficient_scope(
    scopes: Iterable[str],
    *,
    metadata_url: str | None = None,
    description: str = "More scopes are needed.",
    dpop: DPoP | None = None,
) -> str:
    """Return the WWW-Authenticate value of a 403 for a caller that lacks scopes.

    Args:
        scopes: All scopes that the request needs, including those that the caller has. A client requests exactly these,
            and would lose any other.
        metadata_url: The URL of the metadata.
        description: The reason as a sentence for developers.
        dpop: Whether tokens that are bound to a key are taken, as in `unauthorized`.
    """
    error = "insufficient_scope", description
    return _Value(metadata_url, scopes).text(dpop, {"Bearer": error, "DPoP": error})


class _Value:
    """A WWW-Authenticate value, without its errors.

    Args:
        metadata_url: The URL of the metadata.
        scopes: Scopes that the request needs.
    """

    def __init__(self, metadata_url: str | None, scopes: Iterable[str]) -> None:
        if metadata_url is not None:
            checked("The metadata URL", metadata_url)
        self._metadata_url = metadata_url
        self._scope = " ".join(scope for scope in distinct(scopes) if scope != _CLIENT_SCOPE)

    def text(self, dpop: DPoP | None, errors: Mapping[str, tuple[str, str]]) -> str:
        """Return the value with the errors, which are a code and a description for each scheme."""
        schemes = {None: ["Bearer"], "allowed": ["Bearer", "DPoP"], "required": ["DPoP"]}[dpop]
        if len(schemes) == 1 and errors:
            errors = {schemes[0]: next(iter(errors.values()))}
        return ", ".join(self._challenge(scheme, *errors.get(scheme, ("", ""))) for scheme in schemes)

    def _challenge(self, scheme: str, error: str, description: str) -> str:
        parameters = {
            "error": error,
            "error_description": to_description(description),
            "scope": self._scope,
            "resource_metadata": self._metadata_url,
            "algs": " ".join(PROOF_ALGORITHMS) if scheme == "DPoP" else "",
        }
        texts = [f'{name}="{value}"' for name, value in parameters.items() if value]
        if not texts:
            return 'Bearer realm="mcp"'  # a challenge has at least one parameter
        return f"{scheme} {', '.join(texts)}"
