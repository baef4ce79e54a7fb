"""The access tokens of one endpoint: when they are needed, and the sign-in of a user with a browser.

How it works: `Tokens` gives each request the access token of the endpoint, which it renews shortly before its end. When
the server refuses the token, or a request without one, a *flow* gets another one: `BrowserFlow` renews it, or else the
user signs in; the flows of programs are in `program_flows.py`. When the server lacks a scope, the flow asks for the
scopes that the token has together with that one. One request at a time does so; others that wait use its token.
`AuthorizedExchange` puts the token into the requests of a transport, with a proof of the client's key (DPoP) if the
token is bound to one.

In `BrowserFlow`, the client listens on a loopback port, opens the browser, and waits for its return with a code (RFC
8252 section 7.3).

Of another process that renews a token in the same file, the newer token is used. If another one signs the user in, this
one waits for its token, and opens no second page.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import inspect
import secrets
import webbrowser
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import asdict
from time import time
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from funcmcp._client.credentials import secret_method
from funcmcp._client.errors import AuthenticationError, SignInError, one_line
from funcmcp._client.http_messages import MemoryRequest, discard, field_of, refusal_of
from funcmcp._client.oauth import (
    Grant,
    OAuth,
    RegisteredClient,
    authorization_endpoint_of,
    authorization_url,
    parameters_of,
    words_of,
)
from funcmcp._client.targets import SignIn
from funcmcp._client.token_file import TokenFile
from funcmcp._client.token_requests import ProofKey, RefusedError, renewal_margin
from funcmcp._protocol.durations import seconds_text
from funcmcp._state.seal import base64url

if TYPE_CHECKING:
    from asyncio import Future, StreamReader, StreamWriter
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from funcmcp._client.credentials import ProgramSignIn
    from funcmcp._client.oauth import AuthorizationServer
    from funcmcp._transports.http.messages import Exchange, HttpRequest, HttpResponse

_HOST = "127.0.0.1"
_PATH = "/callback"
_MAX_RENEWALS = 2
"""Tokens that a request may cause: one of a sign-in, and one with a scope that the server then asks for."""

_MAX_REQUEST = 32 * 1024
_MAX_BODY = 64 * 1024 * 1024
_REQUEST_SECONDS = 10.0
_FORBIDDEN = 403
_UNAUTHORIZED = 401
_INVALID_GRANT = "invalid_grant"
_OFFLINE = "offline_access"


class Flow(Protocol):
    """A way to get tokens."""

    async def grant(self, earlier: Grant | None, challenge: Mapping[str, str], requested: tuple[str, ...]) -> Grant:
        """Return a new grant; raise SignInError.

        Args:
            earlier: The grant until now; None if there is none.
            challenge: The parameters of the server's challenge.
            requested: The scopes that the server names; empty if it names none.
        """

    async def renew(self, grant: Grant) -> Grant | None:
        """Return a grant with a new token, without its user; None if that is not possible. Raise SignInError."""


class Tokens:
    """The tokens for one endpoint.

    Args:
        url: The endpoint.
        sign_in: How a user, or a program, gets tokens.

    Attributes:
        proof_key: The key that tokens are bound to; None for bearer tokens.
        has_user: Whether a user can sign in.

    Raises:
        ValueError: The URL is neither https nor on a loopback address.
    """

    def __init__(self, url: str, sign_in: SignIn | ProgramSignIn) -> None:
        self.proof_key: ProofKey | None = ProofKey() if sign_in.dpop else None
        self.has_user = isinstance(sign_in, SignIn)
        oauth = OAuth(url, self.proof_key)
        self._url = url
        self._file: TokenFile | None = None
        self._sign_in_seconds = 0.0
        self._flow: Flow
        if isinstance(sign_in, SignIn):
            self._flow = BrowserFlow(oauth, sign_in)
            self._file = None if sign_in.file is None else TokenFile(sign_in.file)
            self._sign_in_seconds = sign_in.seconds
        else:
            from funcmcp._client.program_flows import flow_of  # noqa: PLC0415 - few clients are programs

            self._flow = flow_of(oauth, sign_in)
        self._grant: Grant | None = None
        self._refused_refresh_token: str | None = None
        self._changing = asyncio.Lock()

    async def current(self) -> Grant | None:
        """Return the grant for the next request, renewed if it is about to expire; None before the first one."""
        grant = await self._newest()
        if grant is None or not _expires_soon(grant):
            return grant
        async with self._changing_alone():
            grant = await self._newest()
            if grant is None or not _expires_soon(grant):
                return grant
            try:
                return await self._renewed(grant) or grant
            except SignInError:
                if _has_expired(grant):
                    raise
                return grant

    async def renewed(self, refused: Grant | None, error: AuthenticationError) -> Grant:
        """Return another grant than the one whose token the server has refused.

        Args:
            refused: The grant of the request; None if it had none.
            error: The refusal.

        Raises:
            AuthenticationError: Another token would not help.
            SignInError: There is no other token.
        """
        async with self._changing:
            async with self._file_lock():
                grant = await self._newest()
                if grant is not None and (refused is None or grant.access_token != refused.access_token):
                    return grant
                challenge = parameters_of(error.challenge)
                requested = words_of(challenge.get("scope"))
                if error.status == _FORBIDDEN:
                    requested = _with_lacking_scopes(grant, challenge, requested, error)
                elif grant is not None:
                    renewed = await self._renewed(grant)
                    if renewed is not None:
                        return renewed
            # Not under the lock of the file: the user may take minutes.
            async with self._signing_in():
                newest = await self._newest()
                if newest is not None and (grant is None or newest.access_token != grant.access_token):
                    return newest
                new = await self._flow.grant(grant, challenge, requested)
                async with self._file_lock():
                    return await self._kept(new)

    async def _renewed(self, grant: Grant) -> Grant | None:
        """Return a grant with a new token; None if the authorization server refuses that, also from then on."""
        if grant.refresh_token is not None and grant.refresh_token == self._refused_refresh_token:
            return None
        try:
            return await self._keep(await self._flow.renew(grant))
        except RefusedError as error:
            if error.error == _INVALID_GRANT:
                self._refused_refresh_token = grant.refresh_token
            return None

    @asynccontextmanager
    async def _changing_alone(self) -> AsyncIterator[None]:
        async with self._changing, self._file_lock():
            yield

    @asynccontextmanager
    async def _file_lock(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if self._file is not None:
                await stack.enter_async_context(self._file.locked())
            yield

    def _signing_in(self) -> AbstractAsyncContextManager[None]:
        """Be the only program that signs the user in at the endpoint, if others have the same file."""
        return nullcontext() if self._file is None else self._file.signing_in(self._url, self._sign_in_seconds)

    async def _newest(self) -> Grant | None:
        """Return the newest grant: that of the file, if there is a file."""
        if self._file is not None:
            self._grant = _grant_of(await self._file.entry(self._url)) or self._grant
        return self._grant

    async def _keep(self, grant: Grant | None) -> Grant | None:
        return None if grant is None else await self._kept(grant)

    async def _kept(self, grant: Grant) -> Grant:
        self._grant = grant
        if self._file is not None:
            await self._file.put(self._url, _entry_of(grant, await self._file.entry(self._url)))
        return grant


def _with_lacking_scopes(
    grant: Grant | None, challenge: Mapping[str, str], requested: tuple[str, ...], error: AuthenticationError
) -> tuple[str, ...]:
    """Return the scopes to request after a 403; raise the error if the token has what the server asks for."""
    held = () if grant is None else grant.scopes
    if challenge.get("error") != "insufficient_scope" or set(requested) <= set(held):
        raise error
    return tuple(dict.fromkeys((*held, *requested)))


class AuthorizedExchange:
    """An exchange whose requests have the access token of the endpoint.

    A request that the server refuses is sent again with another token: the server has not begun it.

    Args:
        exchange: Sends the requests.
        tokens: The tokens.
        url_of: Returns the URL of a request with a path, which a redirection may have changed.
    """

    def __init__(self, exchange: Exchange, tokens: Tokens, url_of: Callable[[str], str]) -> None:
        self._exchange = exchange
        self._tokens = tokens
        self._url_of = url_of

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        """Send a request and return its response, which refuses it if no other token would help."""
        grant = await self._tokens.current()
        body = await request.read(_MAX_BODY)
        is_renewed = False
        for _ in range(_MAX_RENEWALS):
            response = await self._send(request, body, grant)
            error = refusal_of(response)
            if error is None or request.method == "DELETE":  # nobody signs in to end a session
                return response
            if is_renewed and error.status == _UNAUTHORIZED and not self._tokens.has_user:
                return response  # a third token of a program would be like the second one
            is_renewed = True
            await discard(response)
            grant = await self._tokens.renewed(grant, error)
        return await self._send(request, body, grant)

    async def _send(self, request: HttpRequest, body: bytes, grant: Grant | None) -> HttpResponse:
        response = await self._exchange(self._with_token(request, body, grant))
        key = self._tokens.proof_key
        if key is None or not key.remember(self._url_of(request.path), field_of(response, "dpop-nonce")):
            return response
        error = refusal_of(response)
        if error is None or parameters_of(error.challenge).get("error") != "use_dpop_nonce":
            return response
        await discard(response)
        return await self._exchange(self._with_token(request, body, grant))

    def _with_token(self, request: HttpRequest, body: bytes, grant: Grant | None) -> HttpRequest:
        lines = [line for line in request.pairs if line[0] not in {b"authorization", b"dpop"}]
        if grant is not None:
            lines.append((b"authorization", f"{grant.token_type} {grant.access_token}".encode()))
            if self._tokens.proof_key is not None:
                proof = self._tokens.proof_key.proof(request.method, self._url_of(request.path), grant.access_token)
                lines.append((b"dpop", proof.encode()))
        return MemoryRequest(request.method, request.path, lines, body)


class BrowserFlow:
    """The sign-in of a user with a browser.

    Args:
        oauth: Requests to the authorization server of the endpoint.
        sign_in: How the user signs in.
    """

    def __init__(self, oauth: OAuth, sign_in: SignIn) -> None:
        self._oauth = oauth
        self._sign_in = sign_in

    async def renew(self, grant: Grant) -> Grant | None:
        """Renew a grant that has a refresh token; see `Flow.renew`."""
        return None if grant.refresh_token is None else await self._oauth.refresh(grant)

    async def grant(self, earlier: Grant | None, challenge: Mapping[str, str], requested: tuple[str, ...]) -> Grant:
        """Sign the user in, as the same client at the same authorization server; see `Flow.grant`."""
        server = await self._oauth.discover(challenge.get("resource_metadata"))
        authorization_endpoint_of(server)  # before the client registers
        registered = None if earlier is None or earlier.issuer != server.issuer else earlier.client
        async with _listening(self._port_of(registered)) as returns:
            client = await self._client(server, registered, returns.redirect_uri)
            verifier = secrets.token_urlsafe(48)
            scopes = self._scopes(server, requested)
            address = authorization_url(
                server,
                client,
                scopes=scopes,
                state=returns.state,
                challenge=base64url(hashlib.sha256(verifier.encode()).digest()),
            )
            await self._open(address)
            code = _code_of(server, await returns.wait(self._sign_in.seconds))
        return await self._oauth.exchange(server, client, code, verifier, scopes)

    def _scopes(self, server: AuthorizationServer, requested: tuple[str, ...]) -> tuple[str, ...]:
        """Return the scopes to request ("Scope Selection Strategy", and SEP-2207 for refresh tokens)."""
        scopes = self._sign_in.scopes or requested or server.resource_scopes
        if self._sign_in.scopes:
            scopes = (*self._sign_in.scopes, *requested)
        offline = (_OFFLINE,) if scopes and _OFFLINE in server.scopes else ()
        return tuple(dict.fromkeys((*scopes, *offline)))

    async def _client(
        self, server: AuthorizationServer, registered: RegisteredClient | None, redirect_uri: str
    ) -> RegisteredClient:
        """Return the client at an authorization server: a registered one, one with a document, or a new one."""
        options = self._sign_in
        if options.client_id is not None:
            method = "none" if options.client_secret is None else secret_method(server.auth_methods)
            return RegisteredClient(options.client_id, options.client_secret, method, redirect_uri)
        if options.client_document is not None and server.takes_documents:
            return RegisteredClient(options.client_document, None, "none", redirect_uri)
        if registered is not None and registered.redirect_uri == redirect_uri:
            return registered
        return await self._oauth.register(server, options.name, redirect_uri)

    def _port_of(self, registered: RegisteredClient | None) -> int:
        """Return the port to listen on: that of the option, or the one that a client has registered."""
        if self._sign_in.port or registered is None:
            return self._sign_in.port
        return urlsplit(registered.redirect_uri).port or 0

    async def _open(self, address: str) -> None:
        if self._sign_in.open_browser is None:
            if not await asyncio.to_thread(webbrowser.open, address):
                raise SignInError("No browser could be opened. Pass SignIn(open_browser=...), which shows the address.")
            return
        opened = self._sign_in.open_browser(address)
        if inspect.isawaitable(opened):
            await opened


def _expires_soon(grant: Grant) -> bool:
    return grant.expires is not None and grant.expires < time() + renewal_margin(grant.lifetime)


def _has_expired(grant: Grant) -> bool:
    return grant.expires is not None and grant.expires < time()


def _code_of(server: AuthorizationServer, query: dict[str, str]) -> str:
    """Return the code with which the browser has returned; raise SignInError if there is none.

    Source: RFC 9207 section 2.4: the issuer is compared without normalization, before an error is read.
    """
    issuer = query.get("iss")
    if issuer != server.issuer and (issuer is not None or server.sends_issuer):
        raise SignInError(f"The answer came from another authorization server than {server.issuer}.")
    if "error" in query:
        description = one_line(query.get("error_description", ""))
        raise SignInError(f"{server.issuer} refuses the sign-in: {one_line(query['error'], 80)} {description}".rstrip())
    if not query.get("code"):
        raise SignInError(f"{server.issuer} has sent the browser back without a code.")
    return query["code"]


class _Returns:
    """The return of the browser, on a loopback port.

    Attributes:
        state: The value that the browser has to bring back.
        redirect_uri: Where it returns to.
    """

    def __init__(self) -> None:
        self.state = secrets.token_urlsafe(24)
        self.redirect_uri = ""
        self._query: Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def wait(self, seconds: float) -> dict[str, str]:
        """Return the query with which the browser returns."""
        try:
            async with asyncio.timeout(seconds):
                return await self._query
        except TimeoutError:
            raise SignInError(f"The user has not signed in within {seconds_text(seconds)}.") from None

    async def handle(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Answer a request to the port."""
        with suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._answer(head.decode("latin-1")))
                await writer.drain()
        writer.close()

    def _answer(self, head: str) -> bytes:
        method, _, remaining = head.partition(" ")
        target = urlsplit(remaining.partition(" ")[0])
        query = dict(parse_qsl(target.query))
        state = query.get("state", "").encode()
        if (method, target.path) != ("GET", _PATH) or not hmac.compare_digest(state, self.state.encode()):
            return _page("400 Bad Request", "This is not the return from the sign-in. Start it again.")
        if not self._query.done():
            self._query.set_result(query)
        return _page("200 OK", "The sign-in is complete. Close this page, and go back to the application.")


@asynccontextmanager
async def _listening(port: int) -> AsyncIterator[_Returns]:
    """Listen for the browser on a loopback port; on any other one if a client's port is in use."""
    returns = _Returns()
    try:
        server = await asyncio.start_server(returns.handle, _HOST, port, limit=_MAX_REQUEST)
    except OSError:
        server = await asyncio.start_server(returns.handle, _HOST, 0, limit=_MAX_REQUEST)
    try:
        returns.redirect_uri = f"http://{_HOST}:{server.sockets[0].getsockname()[1]}{_PATH}"
        yield returns
    finally:
        server.close()  # a browser may have opened another connection, which ends by its time limit


def _page(status: str, text: str) -> bytes:
    body = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Sign-in</title><p>{text}</p></html>\n'
    fields = [
        f"HTTP/1.1 {status}",
        "content-type: text/html; charset=utf-8",
        f"content-length: {len(body)}",
        "cache-control: no-store",
        "content-security-policy: default-src 'none'; frame-ancestors 'none'",
        "referrer-policy: no-referrer",
        "connection: close",
    ]
    return "\r\n".join([*fields, "", body]).encode("ascii")


def _grant_of(entry: object) -> Grant | None:
    """Return the grant in an entry; None if this version can't read it."""
    match entry:
        case {
            "issuer": str(issuer),
            "token_endpoint": str(token_endpoint),
            "resource": str() | None as resource,
            "client": {
                "client_id": str(client_id),
                "secret": str() | None as secret,
                "auth_method": str(auth_method),
                "redirect_uri": str(redirect_uri),
            },
            "access_token": str(access_token),
            "expires": int() | float() | None as expires,
            "refresh_token": str() | None as refresh_token,
            "scopes": str(scopes),
            **members,
        }:
            lifetime = members.get("lifetime")  # absent in entries of earlier versions
            client = RegisteredClient(client_id, secret, auth_method, redirect_uri)
            return Grant(
                issuer,
                token_endpoint,
                resource,
                client,
                access_token,
                expires,
                refresh_token,
                words_of(scopes),
                lifetime if isinstance(lifetime, int | float) else None,
            )
    return None


def _entry_of(grant: Grant, earlier: Any) -> dict[str, Any]:
    """Return the entry of a grant. A renewal keeps what a later version has added to the earlier entry."""
    entry = {**asdict(grant), "scopes": " ".join(grant.scopes)}
    match earlier:
        case {"issuer": grant.issuer, "client": {"client_id": grant.client.client_id} as client}:
            return {**earlier, **entry, "client": {**client, **entry["client"]}}
    return entry
