"""Grants of tools: tokens of the caller at the services of ``Auth(grants=[...])``.

How it works: an account belongs to a user, so all applications of the user share it: its owner is the issuer and the
subject of the principal. It is in the store of the `OAuthProxy`, if there is one, and otherwise in the state of the
server. A tool gets a token that has all scopes that it needs. If the account lacks one, the user is asked for it
together with those that it has.

Source: RFC 6749 sections 3.3 and 5.1 (the scopes of an answer), RFC 7009 (revocation).
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from funcmcp._auth.basic import basic_of
from funcmcp._auth.client_options import made_assertion
from funcmcp._auth.principal import UpstreamTokenError
from funcmcp._grants.accounts import NEVER_SECONDS, Accounts, Tokens, kept_scopes
from funcmcp._grants.connecting import MAX_SCOPE_CHARACTERS, MAX_SCOPES, Connector, Service
from funcmcp._oauth_proxy.client_requests import ClientAuthentication
from funcmcp._oauth_proxy.settings import user_mark
from funcmcp._oauth_proxy.upstream import (
    UpstreamError,
    UpstreamHTTP,
    UpstreamMisconfiguredError,
    UpstreamRefusedError,
    UpstreamUnavailableError,
)
from funcmcp._protocol.objects import number_of
from funcmcp._state.caller_values import ValueOwner
from funcmcp._state.line_limit import LineLimit, escaped
from funcmcp._state.sessions.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from funcmcp._auth.grants import Grant, GrantProvider
    from funcmcp._auth.policy import Auth
    from funcmcp._auth.principal import Principal
    from funcmcp._oauth_proxy.visits import Visits
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._state.caller_values import CallerValues
    from funcmcp._transports.http.endpoints.custom_routes import CustomRoute

_logger = logging.getLogger("funcmcp")

_OWNER: Final = "grants "
_DEFAULT_SECONDS: Final = 300.0
"""Seconds for which a token is used that can be renewed and whose lifetime the service does not say."""

_RENEW_SECONDS: Final = 60.0
_MAX_TOKEN: Final = 8 * 1024
_REVOKE_SECONDS: Final = 10.0
_SUCCESSES: Final = frozenset({200, 204})
_DEFAULT_METHODS: Final = ("client_secret_basic",)
_CLIENT_ID: Final = "{client_id}"


class ProviderClient:
    """This server as a client of a service.

    Args:
        provider: The service.
        http: Sends the requests.
    """

    def __init__(self, provider: GrantProvider, http: UpstreamHTTP | None = None) -> None:
        self._provider = provider
        self._http = http or UpstreamHTTP()
        self._authentication = ClientAuthentication(
            "GrantProvider",
            provider.client_id,
            provider.client_secret,
            method=None if provider.client_secret is None else provider.token_endpoint_auth_method,
            assertion=None if provider.credential is None else self._assertion,
            clock=provider.clock,
        )
        self._limits: dict[tuple[str, int], LineLimit] = {}

    async def tokens(self, form: Mapping[str, str], now: float) -> Tokens:
        """See `AccountClient.tokens`."""
        title = self._provider.title
        secrets = [form.get(name, "") for name in ("code", "code_verifier", "refresh_token")]
        try:
            headers, fields = await self._authentication.fields(_DEFAULT_METHODS, self._provider.token)
            answer = await self._http.post(self._provider.token, {**form, **fields}, headers)
            return _tokens_in(answer, now)
        except UpstreamRefusedError as error:
            self._log_failure("tokens", error, secrets)
            raise UpstreamTokenError("sign_in", f"{title} gives no token. Connect the account anew.") from None
        except UpstreamMisconfiguredError as error:
            self._log_failure("tokens", error, secrets)
            text = f"{title} does not accept this server. The log of the server says why."
            raise UpstreamTokenError("configuration", text) from None
        except UpstreamError as error:
            self._log_failure("tokens", error, secrets)
            text = f"{title} can't be reached, or does not answer as it should. Try again later."
            raise UpstreamTokenError("unavailable", text) from None

    async def revoke(self, access_token: str, refresh_token: str | None) -> bool:
        """See `AccountClient.revoke`."""
        revoke = self._provider.revoke
        if revoke is None:
            return False
        try:
            async with asyncio.timeout(_REVOKE_SECONDS):
                if isinstance(revoke, str):
                    return await self._revoke_at(revoke, access_token, refresh_token)
                outcome = revoke(access_token)
                return (await outcome if inspect.isawaitable(outcome) else outcome) is True
        except Exception as error:  # noqa: BLE001 - also one of the author's function: the account is deleted all the same
            self._log_failure("revoke", error, (access_token, refresh_token or ""))
            return False

    async def _revoke_at(self, url: str, access_token: str, refresh_token: str | None) -> bool:
        """Revoke tokens at an endpoint; raise UpstreamError."""
        provider = self._provider
        if _CLIENT_ID in url:  # GitHub, "Delete an app authorization"
            url = url.replace(_CLIENT_ID, quote(provider.client_id, safe=""))
            headers = {"authorization": basic_of(provider.client_id, provider.client_secret or "")}
            status, _ = await self._http.request("DELETE", url, headers, None, json={"access_token": access_token})
        else:
            headers, fields = await self._authentication.fields(_DEFAULT_METHODS, provider.token)
            form = {"token": refresh_token or access_token, **fields}
            status, _ = await self._http.request("POST", url, headers, form)
        if status not in _SUCCESSES:
            raise UpstreamError(f"status {status}")
        return True

    async def _assertion(self, audience: str) -> str:
        """Return a signed assertion for an audience, which authenticates one request."""
        del audience
        return "" if self._provider.credential is None else await made_assertion(self._provider.credential)

    def _log_failure(self, step: str, error: Exception, secrets: Iterable[str]) -> None:
        """Write a line about a failure, without the secrets that the service, or a function, may have repeated."""
        text = str(error)
        for secret in [*secrets, self._provider.client_secret or ""]:
            text = text.replace(secret, "***") if secret else text
        level = logging.ERROR if isinstance(error, UpstreamMisconfiguredError) else logging.WARNING
        # Each level has a limit of its own, so that users who are refused don't hide what the operator has to do.
        self._limits.setdefault((step, level), LineLimit(level)).write(
            "event=grant_failed service=%s step=%s kind=%s reason=%s",
            self._provider.name,
            step,
            type(error).__name__,
            escaped(text),  # the text of the service may contain anything
        )


class ToolGrants:
    """The grants of the tools of one server.

    Args:
        auth: The services, and who the callers are.
        visits: Finds out which user is at a browser; None without an `OAuthProxy`.
        server_name: Returns the name of the server, for people.
        open_values: Returns the values of callers in the store of the accounts.

    Attributes:
        routes: The routes of the pages.
        redirect_uris: What to register at each service, by its name.

    Raises:
        ValueError: A service has no public URL, and neither `OAuthProxy` nor `Auth.resource` says it.
    """

    def __init__(
        self,
        auth: Auth,
        visits: Visits | None,
        *,
        server_name: Callable[[], str],
        open_values: Callable[[], CallerValues],
    ) -> None:
        self._providers = {provider.name: provider for provider in auth.grants}
        self._accounts: dict[str, Accounts] = {}
        self._connectors: dict[str, Connector] = {}
        self.redirect_uris: dict[str, str] = {}
        for provider in auth.grants:
            service = _service_of(provider, auth, visits)
            client = ProviderClient(provider)
            accounts = Accounts(
                provider.title, provider.name, f"grant {provider.name}", client, open_values, provider.clock
            )
            self._accounts[provider.name] = accounts
            self._connectors[provider.name] = Connector(
                service, client, accounts, server_name=server_name, visits=visits, clock=provider.clock
            )
            self.redirect_uris[provider.name] = service.redirect_uri
        self.routes: list[CustomRoute] = [
            route for connector in self._connectors.values() for route in connector.routes
        ]
        if visits is not None:
            visits.sign_outs.append(partial(self._sign_out, visits.issuer))

    def check(self, needed: Iterable[tuple[str, Grant]]) -> None:
        """Raise RuntimeError if a tool needs a grant of a service that the server does not have."""
        for tool, grant in needed:
            if grant.provider not in self._providers:
                raise RuntimeError(
                    f"The tool {tool!r} needs a grant of {grant.provider!r}, which is not in Auth(grants=[...]). "
                    f"The services there: {', '.join(self._providers)}."
                )

    async def token(self, context: RequestContext, grant: Grant, refused: str | None = None) -> str:
        """Return a token of the caller with the scopes of a grant. The user is asked for what is missing.

        Args:
            context: The request of the caller.
            grant: What the tool needs.
            refused: A token that the service has refused; None for none.

        Raises:
            UpstreamTokenError: There is no token. Its text is for the caller.
            MCPError: The client has to open a page, and then to send the request again.
        """
        accounts, _ = self._of(grant.provider)
        principal = _user_of(context.principal, accounts.title)
        owner = owner_of_user(principal.issuer, principal.subject)
        try:
            if refused is not None:
                await accounts.refuse(owner, refused)
            for _ in range(2):  # once more if a renewal is refused
                await self._ask_for_missing(context, principal, owner, grant)
                try:
                    return await accounts.token(owner)
                except UpstreamTokenError as error:
                    if error.reason != "sign_in":
                        raise
            return await accounts.token(owner)
        except StoreUnavailableError:
            raise UpstreamTokenError("unavailable", _NO_STORE) from None

    async def end(self, principal: Principal | None, name: str) -> bool:
        """Forget the account of a caller; return whether the service has ended the grant, too.

        Raises:
            UpstreamTokenError: There is no user, or the store can't be reached.
        """
        accounts, _ = self._of(name)
        user = _user_of(principal, accounts.title)
        try:
            is_revoked = await accounts.end(owner_of_user(user.issuer, user.subject))
        except StoreUnavailableError:
            raise UpstreamTokenError("unavailable", _NO_STORE) from None
        _logger.info("event=grant_ended service=%s user=%s", name, user_mark(user.subject))
        return is_revoked

    async def finish(self, seconds: float) -> None:
        """Wait for renewals whose callers have gone, at most so many seconds."""
        await asyncio.gather(*(accounts.finish(seconds) for accounts in self._accounts.values()))

    async def _sign_out(self, issuer: str, subject: str) -> None:
        """Forget all accounts of a user, also at the services; raise StoreUnavailableError."""
        for name, accounts in self._accounts.items():
            await accounts.end(owner_of_user(issuer, subject))
            _logger.info("event=grant_ended service=%s user=%s", name, user_mark(subject))

    async def _ask_for_missing(
        self, context: RequestContext, principal: Principal, owner: ValueOwner, grant: Grant
    ) -> None:
        """Ask the user for an account or for scopes that it lacks; raise UpstreamTokenError without them."""
        accounts, connector = self._of(grant.provider)
        granted = await self._granted(owner, grant.provider)
        if granted is not None and self._lacking(granted, grant) == []:
            return
        scopes = [*dict.fromkeys([*(granted or ()), *grant.scopes])]
        if len(scopes) > MAX_SCOPES or sum(map(len, scopes)) > MAX_SCOPE_CHARACTERS:
            scopes = list(grant.scopes)
        await connector.ask(context, principal, owner, scopes)
        lacking = self._lacking(await self._granted(owner, grant.provider) or (), grant)
        if lacking:
            raise UpstreamTokenError(
                "sign_in",
                f"{accounts.title} has not allowed: {' '.join(lacking)}. Call again to be asked for it again.",
            )

    async def _granted(self, owner: ValueOwner, name: str) -> list[str] | None:
        """Return the scopes of an account; None if there is no account."""
        record = await self._accounts[name].read(owner, "grant")
        if record is None:
            return None
        scopes = record.get("scopes")
        return [scope for scope in scopes if isinstance(scope, str)] if isinstance(scopes, list) else []

    def _lacking(self, granted: Sequence[str], grant: Grant) -> list[str]:
        covered = self._providers[grant.provider].covers(granted)
        return [scope for scope in grant.scopes if scope not in covered]

    def _of(self, name: str) -> tuple[Accounts, Connector]:
        if name not in self._providers:
            raise LookupError(
                f"{name!r} is not in Auth(grants=[...]). The services there: {', '.join(self._providers)}."
            )
        return self._accounts[name], self._connectors[name]


_NO_STORE: Final = "The server can't reach its store of accounts now. Try again later."


def owner_of_user(issuer: str, subject: str) -> ValueOwner:
    """Return the owner of the accounts of a user."""
    return ValueOwner(_OWNER + hashlib.sha256(json.dumps([issuer, subject]).encode()).hexdigest()[:32])


def _user_of(principal: Principal | None, title: str) -> Principal:
    """Return the user of a call; raise UpstreamTokenError without one."""
    if principal is None:
        raise UpstreamTokenError("missing", f"{title} needs to know who calls. Sign in, and call again.")
    if principal.per_token:
        raise UpstreamTokenError(
            "missing", f"{title} needs a token that names its user. Sign in with another one, and call again."
        )
    return principal


def _service_of(provider: GrantProvider, auth: Auth, visits: Visits | None) -> Service:
    """Return the service of a provider, and where the pages of this server for it are."""
    path = f"/grants/{provider.name}"
    served_path = path
    if provider.public_url is not None:
        base = provider.public_url.rstrip("/")
    elif visits is not None:
        base = visits.issuer
        served_path = urlsplit(base).path + path
    elif auth.resource is not None:
        parts = urlsplit(auth.resource.resource)
        base = f"{parts.scheme}://{parts.netloc}"
    else:
        raise ValueError(
            f"GrantProvider({provider.name!r}) needs public_url=, the URL at which browsers reach this server, because "
            "there is neither an OAuthProxy nor Auth(resource=)."
        )
    issuer = provider.issuer
    return Service(
        title=provider.title,
        name=provider.name,
        key=f"grant-{provider.name}",
        base=base,
        path=path,
        served_path=served_path,
        owner_prefix=_OWNER,
        authorization_url=provider.authorize,
        client_id=provider.client_id,
        parameters=provider.parameters,
        scopes=provider.scopes,
        is_issuer=lambda received: issuer is None or received == issuer,
        covers=provider.covers,
    )


def _tokens_in(answer: Mapping[str, Any], now: float) -> Tokens:
    """Return what a service has issued; raise UpstreamUnavailableError if a request can't have its token."""
    token, refresh_token = answer.get("access_token"), answer.get("refresh_token")
    if not _is_token(token) or str(answer.get("token_type", "bearer")).lower() != "bearer":
        raise UpstreamUnavailableError("the answer has no access token of the type Bearer that a request can have")
    if not _is_token(refresh_token):
        refresh_token = None
    seconds = number_of(answer.get("expires_in"))
    if seconds is None:
        seconds = NEVER_SECONDS if refresh_token is None else _DEFAULT_SECONDS
    seconds = min(seconds, NEVER_SECONDS)
    until = now + seconds - min(_RENEW_SECONDS, seconds / 10)
    return Tokens(str(token), until, refresh_token, _scopes_in(answer.get("scope")))


def _is_token(value: object) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value) <= _MAX_TOKEN
        and value.isascii()
        and value.isprintable()
        and " " not in value
    )


def _scopes_in(value: object) -> tuple[str, ...] | None:
    """Return the scopes of an answer, None if it has none. GitHub and others separate them with commas."""
    if not isinstance(value, str):
        return None
    return kept_scopes(value.replace(",", " ").split())
