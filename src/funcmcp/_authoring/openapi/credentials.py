"""Credentials of the author for an API, by the security schemes of its document.

The author gives the values; the document says where each goes. They are never arguments: `Credentials.hidden` are the
places that a model can't fill.

Source: OpenAPI 3.0.4 and 3.1.1, "Security Scheme Object", "Security Requirement Object"; Swagger 2.0.
"""

from __future__ import annotations

import inspect
from base64 import b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from funcmcp._authoring.openapi.documents import dialect_of
from funcmcp._authoring.openapi.http_requests import header_text
from funcmcp._authoring.openapi.references import resolved
from funcmcp._authoring.openapi.swagger2 import security_schemes_of_2_0
from funcmcp._protocol.http_rules import FIELD_NAME
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from funcmcp._authoring.calling.feature_context import Context

    Credential: TypeAlias = str | tuple[str, str] | Callable[..., Any]
    APIAuth: TypeAlias = Credential | Mapping[str, Credential]


class Scheme(NamedTuple):
    """A place of a credential in requests.

    Attributes:
        location: "header", "query" or "cookie".
        name: The name of the header, parameter or cookie.
        kind: "bearer" or "basic" for the header Authorization, "key" for others.
    """

    location: str
    name: str
    kind: str


@dataclass
class Applied:
    """The parts of a request that are credentials.

    Attributes:
        headers: The headers by lower-case name.
        query: The parts of the query, percent-encoded.
        cookies: The parts of the header Cookie.
    """

    headers: dict[str, str] = field(default_factory=dict)
    query: list[str] = field(default_factory=list)
    cookies: list[str] = field(default_factory=list)


class Credentials:
    """The author's credentials for the operations of one document.

    Args:
        document: The document.
        auth: A token or key, a pair of a user and a password, a function that returns one of these, or a dict of these
            by the names of the document's security schemes. None for no credentials.

    Attributes:
        hidden: The places and names of all keys in the document.

    Raises:
        RegistrationError: The document has no security scheme for the credentials.
    """

    def __init__(self, document: Mapping[str, Any], auth: APIAuth | None) -> None:
        self._default = document.get("security")
        self._schemes = _schemes_of(document)
        self.hidden = {(scheme.location, scheme.name) for scheme in self._schemes.values() if scheme.kind == "key"}
        self._secrets = self._secrets_of(auth)
        self._takes_context = {name: _takes_context(secret) for name, secret in self._secrets.items()}

    def _secrets_of(self, auth: APIAuth | None) -> dict[str, Credential]:
        """Return the author's credentials by the names of their schemes."""
        if auth is None:
            return {}
        if isinstance(auth, dict):
            unknown = sorted(auth.keys() - self._schemes.keys())
            if unknown:
                names = ", ".join(sorted(self._schemes)) or "none"
                raise RegistrationError(
                    f"auth= has {unknown[0]!r}, but the security schemes of the document are: {names}."
                )
            return dict(auth)
        if not isinstance(auth, str | tuple) and not callable(auth):
            raise RegistrationError(
                "auth= is a token or key, a pair (user, password), a function that returns one of these, or a dict of "
                f"these by the names of security schemes, not {type(auth).__name__}."
            )
        if not self._schemes:
            self._schemes = {"": Scheme("header", "authorization", "basic" if isinstance(auth, tuple) else "bearer")}
            self._default = None
        secrets: dict[str, Credential] = {name: auth for name, scheme in self._schemes.items() if _fits(auth, scheme)}
        if not secrets:
            raise RegistrationError(
                f"auth= fits none of the document's security schemes: {', '.join(sorted(self._schemes))}. A scheme of "
                "the type 'http basic' takes a pair (user, password), others take a text."
            )
        return secrets

    def schemes_for(self, security: Any) -> tuple[str, ...]:
        """Return the names of the schemes whose credentials an operation gets.

        Args:
            security: The operation's own requirement: alternatives, each of which names all schemes that it needs. None
                if the document's applies.
        """
        alternatives = self._default if security is None else security
        if alternatives is None:
            return tuple(self._secrets)[:1]  # the document does not say which operations need credentials
        for alternative in alternatives if isinstance(alternatives, list) else []:
            names = tuple(alternative) if isinstance(alternative, dict) else ()
            if names and all(name in self._secrets for name in names):
                return names
        return ()

    async def apply(self, names: tuple[str, ...], context: Context) -> Applied:
        """Return the credentials of schemes, as parts of a request."""
        applied = Applied()
        for name in names:
            scheme, secret = self._schemes[name], self._secrets[name]
            if callable(secret):
                secret = secret(context) if self._takes_context[name] else secret()
                if inspect.isawaitable(secret):
                    secret = await secret
            _add(applied, scheme, secret)
        return applied


def _add(applied: Applied, scheme: Scheme, secret: Any) -> None:
    if scheme.kind == "basic":
        pair = ":".join(secret) if isinstance(secret, tuple) else str(secret)
        applied.headers["authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    elif not isinstance(secret, str):
        raise TypeError(f"The credential for the {scheme.location} {scheme.name} must be a str.")
    elif scheme.kind == "bearer":
        applied.headers["authorization"] = header_text("authorization", f"Bearer {secret}")
    elif scheme.location == "header":
        applied.headers[scheme.name.lower()] = header_text(scheme.name, secret)
    elif scheme.location == "query":
        applied.query.append(f"{quote(scheme.name, safe='')}={quote(secret, safe='')}")
    else:
        applied.cookies.append(f"{quote(scheme.name, safe='')}={quote(secret, safe='')}")


def _takes_context(secret: Any) -> bool:
    """Return whether a credential is a function of the `Context` of the call."""
    return callable(secret) and bool(inspect.signature(secret).parameters)


def _fits(secret: Any, scheme: Scheme) -> bool:
    """Return whether a credential has the form that a scheme needs."""
    if callable(secret):
        return True
    return isinstance(secret, tuple) is (scheme.kind == "basic")


def _schemes_of(document: Mapping[str, Any]) -> dict[str, Scheme]:
    """Return the security schemes that the document has and that are supported, by name."""
    if dialect_of(document) == "2.0":
        nodes: Any = security_schemes_of_2_0(document)
    else:
        components = document.get("components")
        nodes = components.get("securitySchemes") if isinstance(components, dict) else None
    schemes = {}
    for name, node in nodes.items() if isinstance(nodes, dict) else ():
        try:
            scheme = _scheme(resolved(document, node))
        except RegistrationError:
            continue  # a reference to another document
        if scheme is not None:
            schemes[str(name)] = scheme
    return schemes


def _scheme(node: Mapping[str, Any]) -> Scheme | None:
    """Return a scheme; None if it is not supported, such as mutual TLS."""
    kind, location, name = node.get("type"), node.get("in"), node.get("name")
    if kind in {"oauth2", "openIdConnect"}:
        return Scheme("header", "authorization", "bearer")
    if kind == "http":
        scheme = str(node.get("scheme", "")).lower()
        return Scheme("header", "authorization", scheme) if scheme in {"bearer", "basic"} else None
    is_key = kind == "apiKey" and isinstance(name, str)
    if is_key and location in {"query", "cookie"}:
        return Scheme(str(location), str(name), "key")
    if is_key and location == "header" and FIELD_NAME.fullmatch(str(name)):
        return Scheme("header", str(name), "key")
    return None
