"""What all endpoints of a proxy share: its configuration, its clients, its limits and its log."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from funcmcp._auth.dpop import normalized
from funcmcp._oauth_proxy.author_functions import AuthorFunctions
from funcmcp._oauth_proxy.client_documents import MAX_URL, is_document_url
from funcmcp._oauth_proxy.failures import ALLOW_FAILED
from funcmcp._oauth_proxy.identity_assertions import ASSERTION_GRANT
from funcmcp._oauth_proxy.programs import PROGRAM_GRANT
from funcmcp._oauth_proxy.renewals import Renewals
from funcmcp._oauth_proxy.sign_in_log import SignInLog
from funcmcp._state.rates import MemoryRates

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from funcmcp._auth.dpop import DPoP
    from funcmcp._auth.tokens.proofs import Proofs
    from funcmcp._oauth_proxy.access_tokens import AccessTokens
    from funcmcp._oauth_proxy.allowed_clients import ClientFilter
    from funcmcp._oauth_proxy.client_documents import ClientDocuments
    from funcmcp._oauth_proxy.clients import Clients, OAuthClient
    from funcmcp._oauth_proxy.identity_assertions import AssertionGrants
    from funcmcp._oauth_proxy.programs import Programs
    from funcmcp._oauth_proxy.stored_sign_ins import StoredSignIns
    from funcmcp._oauth_proxy.upstream import Upstream, User
    from funcmcp._oauth_proxy.upstream_tokens import Exchange
    from funcmcp._oauth_proxy.user_claims import UserClaims
    from funcmcp._state.seal import KeyRing

    Allow = Callable[[User], bool | Iterable[str] | Awaitable[bool | Iterable[str]]]

_logger = logging.getLogger("funcmcp")

_MINUTE = 60
_CALLERS = 10_000

CALLBACK_PATH = "/oauth/callback"
"""The path to which the identity provider sends the browser back, unless the author chooses another one."""

IGNORED_SCOPES = frozenset({"openid", "profile", "email", "offline_access"})
"""Scopes of OpenID Connect. Clients add them, and the proxy has nothing to give for them."""


class ClientNotAllowedError(Exception):
    """A client is not one of those that may sign users in."""


class AddressRates:
    """How often an address may use the endpoints, in one process."""

    def __init__(self) -> None:
        self.registrations = _per_minute(20)
        self.authorizations = _per_minute(60)
        self.browsers = _per_minute(120)
        self.failed_tokens = _per_minute(30)
        self.wrong_secrets = _per_minute(30)


def _per_minute(count: int) -> MemoryRates:
    return MemoryRates(count / _MINUTE, count, callers=_CALLERS)


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """The configuration of a proxy.

    Attributes:
        url: The URL of the endpoint that tokens are for, without a slash at the end.
        issuer: The issuer of the tokens, below which the endpoints are: the origin of the URL, or a path of it.
        upstream: The identity provider.
        scopes: What each scope allows, in a sentence for users.
        keys: The keys of the proxy.
        clients: The clients that register.
        allowed_clients: Which clients may sign users in; None: all.
        documents: The clients whose id is the URL of a document; None: there are none.
        tokens: Issues access tokens.
        exchange: Exchanges sign-ins for tokens for other APIs; None if the upstream does not.
        assertions: What identity assertions are good for; None: nothing.
        programs: The programs that get tokens without a user; None: there are none.
        allow: Decides which users may sign in, and with which scopes; None: all users of the upstream, with all scopes.
        claims: Determines the claims of users for the tokens.
        sign_ins: The sign-ins in the store; None without a store.
        refresh_seconds: Seconds from the sign-in to the end of its refresh tokens; 0 for no refresh tokens.
        callback_path: The path of the callback below the issuer.
        dpop: Whether clients may bind tokens to their keys, or must; None: neither.
        proofs: Checks the proofs of token requests; None if `dpop` is None.
        clock: A function that returns seconds since 1970.
        rates: How often an address may use the endpoints.
        log: Writes what fails.
        renewals: Renewals that have not reached the client, without a store.
        allow_functions: Calls `allow`.
    """

    url: str
    issuer: str
    upstream: Upstream
    scopes: Mapping[str, str]
    keys: KeyRing
    clients: Clients
    allowed_clients: ClientFilter | None
    documents: ClientDocuments | None
    tokens: AccessTokens
    exchange: Exchange | None
    assertions: AssertionGrants | None
    programs: Programs | None
    allow: Allow | None
    claims: UserClaims
    sign_ins: StoredSignIns | None
    refresh_seconds: float
    callback_path: str
    dpop: DPoP | None
    proofs: Proofs | None
    clock: Callable[[], float]
    rates: AddressRates = field(default_factory=AddressRates)
    log: SignInLog = field(default_factory=SignInLog)
    renewals: Renewals = field(default_factory=Renewals)
    allow_functions: AuthorFunctions = field(default_factory=partial(AuthorFunctions, "allow", ALLOW_FAILED))

    @property
    def origin(self) -> str:
        """The origin of the endpoints, which browsers send with the form."""
        parts = urlsplit(self.issuer)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def callback(self) -> str:
        """The URL to which the identity provider sends the browser back."""
        return f"{self.issuer}{self.callback_path}"

    @property
    def grant_types(self) -> list[str]:
        """The grant types of the token endpoint."""
        grant_types = ["authorization_code", "refresh_token"]
        if self.assertions is not None:
            grant_types.append(ASSERTION_GRANT)
        if self.programs is not None:
            grant_types.append(PROGRAM_GRANT)
        return grant_types

    async def find_client(self, client_id: str | None) -> OAuthClient | None:
        """Return the client with an id, None for an unknown one.

        Raises:
            ClientNotAllowedError: The client is not one of those that may sign users in.
            DocumentError: The document of the client is not usable.
        """
        if client_id is None:
            return None
        if self.documents is not None and is_document_url(client_id):
            self._check_document(client_id)  # before the request, so that only hosts of the list are asked
            of_document = await self.documents.client(client_id)
            if self.allowed_clients is not None and self.allowed_clients.checks_documents:
                self.check_uris(of_document.redirect_uris)
            return of_document
        client = self.clients.read(client_id)
        if client is not None:
            self.check_uris(client.redirect_uris)
        return client

    def key_of_client(self, client_id: str | None) -> str | None:
        """Return the key of the client with an id, None for an unknown one, without requesting its document.

        A code and a refresh token have the key of their client, so what was checked at the beginning still holds.
        """
        if client_id is None:
            return None
        try:
            if self.documents is not None and is_document_url(client_id):
                self._check_document(client_id)
                return client_id if len(client_id) <= MAX_URL else None
            client = self.clients.read(client_id)
            if client is not None:
                self.check_uris(client.redirect_uris)
        except ClientNotAllowedError:
            return None
        return None if client is None else client.key

    def check_uris(self, redirect_uris: Iterable[str]) -> None:
        """Raise ClientNotAllowedError unless a client with these redirect URIs may sign users in."""
        if self.allowed_clients is not None and not self.allowed_clients.allows_uris(redirect_uris):
            raise ClientNotAllowedError

    def _check_document(self, url: str) -> None:
        if self.allowed_clients is not None and not self.allowed_clients.allows_document(url):
            raise ClientNotAllowedError

    def is_of_program(self, subject: str) -> bool:
        """Return whether a subject is the name of a program, so that no user may have it (RFC 9068 section 5)."""
        return self.programs is not None and subject in self.programs

    async def is_from_upstream(self, issuer: str | None) -> bool:
        """Return whether the ``iss`` of an answer is that of the upstream (RFC 9207), or may be missing."""
        if issuer is not None:
            return issuer == self.upstream.issuer
        return not await self.upstream.requires_issuer()

    def is_resource(self, resource: str) -> bool:
        """Return whether a resource is the endpoint.

        A slash at the end and the letters of the scheme and the host play no part (MCP "basic/authorization",
        "Canonical Server URI"), and neither does a query: clients whose users enter a URL with one repeat it. A token
        is for the endpoint in any case.
        """
        url = normalized(resource) if "#" not in resource else None  # RFC 8707 section 2: no fragment
        return url is not None and url.removesuffix("/") == (normalized(self.url) or "").removesuffix("/")


def log_event(event: str, client: str, user: str | None = None, scopes: Iterable[str] = ()) -> None:
    """Write one line about an event of a sign-in. It has no secrets: digests, scopes of the server, and no URL."""
    _logger.info("event=oauth_%s client=%s user=%s scopes=%s", event, client, user_mark(user), ",".join(scopes) or "-")


def user_mark(subject: str | None) -> str:
    """Return the mark of a user in the log."""
    return "-" if subject is None else hashlib.sha256(subject.encode()).hexdigest()[:12]
