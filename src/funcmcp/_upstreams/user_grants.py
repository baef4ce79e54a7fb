"""`ask_user`: the caller's own account at an upstream, which the user connects once with a browser.

How it works: the flow that connects an account, and the store of accounts, are those of `funcmcp._grants`. After that
the account is used for this user, and renewed, until the authorization server refuses it. If the upstream asks for a
further scope, the user is asked again.
"""

from __future__ import annotations

import re
from time import time
from typing import TYPE_CHECKING, Final

from funcmcp._auth.access import distinct
from funcmcp._auth.owner import owner_of
from funcmcp._auth.principal import UpstreamTokenError
from funcmcp._auth.urls import checked
from funcmcp._client.oauth import parameters_of, words_of
from funcmcp._grants.accounts import FLOW_SECONDS, NEVER_SECONDS, Accounts, Tokens, kept_scopes
from funcmcp._grants.connecting import MAX_SCOPE_CHARACTERS, MAX_SCOPES, Connector, Service
from funcmcp._objects.public_names import public
from funcmcp._state.caller_values import ValueOwner
from funcmcp._upstreams.auth import TokenClient, UpstreamAuth, auth_of, issued_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from funcmcp._auth.principal import Principal
    from funcmcp._authoring.calling.services import Services
    from funcmcp._client.credentials import Credential
    from funcmcp._client.errors import AuthenticationError
    from funcmcp._state.caller_values import CallerValues
    from funcmcp._upstreams.auth import AuthFunction, Caller, Headers

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_FORBIDDEN: Final = 403
_OWNER: Final = "principal "


class _Client:
    """This server as a client of the authorization server of an upstream.

    Args:
        client: Sends the requests.
    """

    def __init__(self, client: TokenClient) -> None:
        self._client = client

    async def tokens(self, form: Mapping[str, str], now: float) -> Tokens:
        """See `AccountClient.tokens`."""
        answer = await self._client.request(form, ())
        issued = issued_in(answer, now)
        refresh_token = answer.get("refresh_token")
        if not isinstance(refresh_token, str) or not refresh_token:
            refresh_token = None
        is_endless = refresh_token is None and answer.get("expires_in") is None and "refresh_token" not in form
        until = now + NEVER_SECONDS if is_endless else issued.until
        return Tokens(issued.token, until, refresh_token, kept_scopes(words_of(answer.get("scope"))))

    async def revoke(self, access_token: str, refresh_token: str | None) -> bool:
        """See `AccountClient.revoke`. An upstream has no revocation endpoint here."""
        del access_token, refresh_token
        return False


class _UserGrants(UpstreamAuth):
    """The accounts of all users at one upstream.

    Args:
        service: The authorization server of the upstream, and the pages of this server.
        client: This server as a client of it.
        scopes: The scopes to request.
        lists: Who reads the lists for users without an account; None for requests without credentials.
        clock: Returns seconds since 1970.
    """

    def __init__(
        self,
        service: Service,
        client: _Client,
        scopes: Sequence[str],
        *,
        lists: UpstreamAuth | None,
        clock: Callable[[], float],
    ) -> None:
        self._name = service.title
        self._scopes = distinct(scopes)
        self._lists = lists
        self._services: Services | None = None
        self._accounts = Accounts(
            service.title, service.name, f"upstream {service.name}", client, self._open_values, clock
        )
        self._connector = Connector(
            service, client, self._accounts, server_name=self._server_name, visits=None, clock=clock
        )
        self.routes = self._connector.routes

    def attach(self, services: Services) -> None:
        """Use the state of a server, which it then needs."""
        services.uses_state = True
        self._services = services

    async def headers(self, caller: Caller) -> Headers:
        """Return the token of a user, who is asked for it unless it is stored. Lists are read without asking."""
        if caller.principal is None:
            if caller.context is not None:
                raise UpstreamTokenError("missing", f"{self._name} needs to know who calls. Sign in, and call again.")
            return await self._headers_of_lists(caller)
        owner = _owner(caller.principal)
        if await self._accounts.read(owner, "grant") is None:
            if caller.context is None:
                return await self._headers_of_lists(caller)
            scopes = await self._accounts.read(owner, "scopes")
            await self._connector.ask(
                caller.context, caller.principal, owner, self._scopes if scopes is None else scopes["scopes"]
            )
        return {"authorization": f"Bearer {await self._accounts.token(owner)}"}

    async def _headers_of_lists(self, caller: Caller) -> Headers:
        """Return the headers of requests for lists before the user has connected an account."""
        return {} if self._lists is None else await self._lists.headers(caller)

    async def refused(self, caller: Caller, headers: Headers, error: AuthenticationError) -> bool:
        """Renew a refused token. Forget an account that can't be renewed or lacks a scope: the user is asked."""
        if caller.principal is None:
            return self._lists is not None and await self._lists.refused(caller, headers, error)
        owner = _owner(caller.principal)
        refused = headers.get("authorization", "").removeprefix("Bearer ")
        grant = await self._accounts.read(owner, "grant")
        if grant is None and caller.context is None:
            return self._lists is not None and await self._lists.refused(caller, headers, error)
        if grant is None or grant["access_token"] != refused:
            return True
        if error.status == _FORBIDDEN:
            return await self._lacks_scopes(owner, grant, error)
        await self._accounts.refuse(owner, refused)
        return True

    async def _lacks_scopes(self, owner: ValueOwner, grant: Mapping[str, object], error: AuthenticationError) -> bool:
        """Ask the user for the scopes of a challenge; return False if the grant has them, or for too many."""
        challenge = parameters_of(error.challenge)
        stored = grant.get("scopes")
        granted = [scope for scope in stored if isinstance(scope, str)] if isinstance(stored, list) else []
        lacking = set(words_of(challenge.get("scope"))) - set(granted)
        scopes = [*granted, *sorted(lacking)]
        is_too_much = len(scopes) > MAX_SCOPES or sum(map(len, scopes)) > MAX_SCOPE_CHARACTERS
        if challenge.get("error") != "insufficient_scope" or not lacking or is_too_much:
            return False
        await self._accounts.write(owner, "scopes", {"scopes": scopes}, FLOW_SECONDS)
        await self._accounts.remove(owner, "grant")
        return True

    def _open_values(self) -> CallerValues:
        if self._services is None or self._services.open_values is None:
            raise RuntimeError("ask_user works in an Upstream that is mounted in an MCPServer.")
        return self._services.open_values()

    def _server_name(self) -> str:
        name: str = self._name if self._services is None else self._services.runtime.name
        return name


@public("funcmcp.upstreams")
def ask_user(  # noqa: PLR0913 - an authorization server, and this server as its client
    name: str,
    *,
    public_url: str,
    authorization_url: str,
    token_url: str,
    client_id: str,
    client_secret: str | None = None,
    credential: Credential | None = None,
    scopes: Sequence[str] = (),
    issuer: str | None = None,
    lists: UpstreamAuth | AuthFunction | None = None,
    clock: Callable[[], float] = time,
) -> UpstreamAuth:
    """Call the upstream with an account of each user, which the user connects with a browser when a call needs it.

    The tokens are in the state of the server (`MCPServer(state=)`), encrypted, and renewed. Callers without a principal
    are refused. Register ``<public_url>/upstreams/<name>/callback`` as the redirect URI.

    Args:
        name: A name for the upstream, of lower-case letters, digits and hyphens.
        public_url: The URL at which browsers reach this server, without the path of the endpoint.
        authorization_url: The authorization endpoint of the upstream's authorization server.
        token_url: Its token endpoint.
        client_id: The id of this server as a client there.
        client_secret: Its secret, if it has one.
        credential: In place of a secret, as in `funcmcp.client.ClientCredentials`.
        scopes: The scopes to request.
        issuer: The ``iss`` with which the browser returns, for authorization servers that send one (RFC 9207).
        lists: Who reads the lists of the upstream for a user who has not connected an account, as `Upstream.auth`.
            None: they are read without credentials.
        clock: Returns seconds since 1970.

    Raises:
        ValueError: The name is not valid, a URL is neither https nor on this machine, or there are a secret and a
            credential.
    """
    if not _NAME.fullmatch(name):
        raise ValueError("The name of ask_user has lower-case letters, digits and hyphens, such as 'docs'.")
    checked("public_url", public_url)
    checked("authorization_url", authorization_url)
    service = Service(
        title=name,
        name=name,
        key=f"upstream-{name}",
        base=public_url.rstrip("/"),
        path=f"/upstreams/{name}",
        served_path=f"/upstreams/{name}",
        owner_prefix=_OWNER,
        authorization_url=authorization_url,
        client_id=client_id,
        is_issuer=lambda received: received == issuer,
    )
    client = _Client(TokenClient(token_url, client_id, client_secret, credential))
    return _UserGrants(service, client, scopes, lists=None if lists is None else auth_of(lists), clock=clock)


def _owner(principal: Principal) -> ValueOwner:
    return ValueOwner(f"{_OWNER}{owner_of(principal)}")
