"""The sign-in of a user: when it is needed, where the browser returns to, and where the tokens are kept.

How it works: `Tokens` gives each request the access token of the endpoint, which it renews shortly before its end. When
the server refuses the token, or a request without one, the token is renewed, or else the user signs in: the client
listens on a loopback port, opens the browser, and waits for its return with a code (RFC 8252 section 7.3). When the
server lacks a scope, the user signs in for the scopes that the token has together with that one. One request at a time
does so; others that wait use its token.

Of another process that renews a token in the same file, the newer token is used.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import inspect
import json
import os
import secrets
import webbrowser
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from funcmcp._client.errors import AuthenticationError, SignInError, one_line
from funcmcp._client.oauth import (
    Grant,
    OAuth,
    RefusedError,
    RegisteredClient,
    authorization_url,
    parameters_of,
    words_of,
)
from funcmcp._protocol.durations import seconds_text
from funcmcp._state.seal import base64url

if TYPE_CHECKING:
    from asyncio import Future, StreamReader, StreamWriter
    from collections.abc import AsyncIterator
    from pathlib import Path

    from funcmcp._client.oauth import AuthorizationServer
    from funcmcp._client.targets import SignIn

_HOST = "127.0.0.1"
_PATH = "/callback"
_RENEW_SECONDS = 30
"""Seconds before its end at which a token is renewed."""

_MAX_REQUEST = 32 * 1024
_REQUEST_SECONDS = 10.0
_FORBIDDEN = 403
_OFFLINE = "offline_access"


class Tokens:
    """The tokens for one endpoint.

    Args:
        url: The endpoint.
        sign_in: How the user signs in.

    Raises:
        ValueError: The URL is neither https nor on a loopback address.
    """

    def __init__(self, url: str, sign_in: SignIn) -> None:
        self._oauth = OAuth(url)
        self._sign_in = sign_in
        self._grant: Grant | None = None
        self._changing = asyncio.Lock()

    async def current(self) -> str | None:
        """Return the token for the next request, renewed if it is about to expire; None before the first sign-in."""
        grant = self._known()
        if grant is None or grant.refresh_token is None or not _expires_soon(grant):
            return None if grant is None else grant.access_token
        async with self._changing:
            grant = self._known()
            if grant is not None and _expires_soon(grant):
                with suppress(RefusedError):  # the server then asks for a sign-in
                    grant = self._keep(await self._oauth.refresh(grant))
            return None if grant is None else grant.access_token

    async def renewed(self, refused: str | None, error: AuthenticationError) -> str:
        """Return another token than the one that the server has refused.

        Args:
            refused: The token of the request; None if it had none.
            error: The refusal.

        Raises:
            AuthenticationError: Another token would not help.
            SignInError: The user could not be signed in.
        """
        async with self._changing:
            grant = self._known()
            if grant is not None and grant.access_token != refused:
                return grant.access_token
            challenge = parameters_of(error.challenge)
            requested = words_of(challenge.get("scope"))
            if error.status == _FORBIDDEN:
                held = () if grant is None else grant.scopes
                if challenge.get("error") != "insufficient_scope" or set(requested) <= set(held):
                    raise error
                requested = tuple(dict.fromkeys((*held, *requested)))
            elif grant is not None and grant.refresh_token is not None:
                with suppress(RefusedError):
                    return self._keep(await self._oauth.refresh(grant)).access_token
            return self._keep(await self._signed_in(grant, challenge, requested)).access_token

    async def _signed_in(self, grant: Grant | None, challenge: dict[str, str], requested: tuple[str, ...]) -> Grant:
        """Sign the user in.

        Args:
            grant: The grant until now, whose client is used again if it is of the same authorization server.
            challenge: The parameters of the server's challenge.
            requested: The scopes that the server names; empty if it names none.
        """
        server = await self._oauth.discover(challenge.get("resource_metadata"))
        known = None if grant is None or grant.issuer != server.issuer else grant.client
        async with _listening(self._port_of(known)) as returns:
            client = await self._client(server, known, returns.redirect_uri)
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
        self, server: AuthorizationServer, known: RegisteredClient | None, redirect_uri: str
    ) -> RegisteredClient:
        """Return the client at an authorization server: a registered one, one with a document, or a new one."""
        options = self._sign_in
        if options.client_id is not None:
            method = "none" if options.client_secret is None else "client_secret_basic"
            if options.client_secret is not None and "client_secret_basic" not in server.auth_methods:
                method = "client_secret_post" if "client_secret_post" in server.auth_methods else method
            return RegisteredClient(options.client_id, options.client_secret, method, redirect_uri)
        if options.client_document is not None and server.takes_documents:
            return RegisteredClient(options.client_document, None, "none", redirect_uri)
        if known is not None and known.redirect_uri == redirect_uri:
            return known
        return await self._oauth.register(server, options.name, redirect_uri)

    def _port_of(self, known: RegisteredClient | None) -> int:
        """Return the port to listen on: that of the option, or the one that a client has registered."""
        if self._sign_in.port or known is None:
            return self._sign_in.port
        return urlsplit(known.redirect_uri).port or 0

    async def _open(self, address: str) -> None:
        if self._sign_in.open_browser is None:
            if not await asyncio.to_thread(webbrowser.open, address):
                raise SignInError("No browser could be opened. Pass SignIn(open_browser=...), which shows the address.")
            return
        opened = self._sign_in.open_browser(address)
        if inspect.isawaitable(opened):
            await opened

    def _known(self) -> Grant | None:
        """Return the newest grant: that of the file, if there is a file."""
        if self._sign_in.file is not None:
            self._grant = _grant_of(_read(self._sign_in.file).get(self._oauth.url)) or self._grant
        return self._grant

    def _keep(self, grant: Grant) -> Grant:
        self._grant = grant
        if self._sign_in.file is not None:
            entries = _read(self._sign_in.file)
            entries[self._oauth.url] = _entry_of(grant, entries.get(self._oauth.url))
            _write(self._sign_in.file, entries)
        return grant


def _expires_soon(grant: Grant) -> bool:
    return grant.expires is not None and grant.expires < time() + _RENEW_SECONDS


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
        method, _, rest = head.partition(" ")
        target = urlsplit(rest.partition(" ")[0])
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


def _read(file: Path) -> dict[str, Any]:
    """Return the entries of a file by endpoint. Empty if the file does not exist, or has something else."""
    try:
        entries = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return entries if isinstance(entries, dict) else {}


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
        }:
            client = RegisteredClient(client_id, secret, auth_method, redirect_uri)
            return Grant(
                issuer, token_endpoint, resource, client, access_token, expires, refresh_token, words_of(scopes)
            )
    return None


def _entry_of(grant: Grant, earlier: Any) -> dict[str, Any]:
    """Return the entry of a grant. A renewal keeps what a later version has added to the earlier entry."""
    entry = {**asdict(grant), "scopes": " ".join(grant.scopes)}
    match earlier:
        case {"issuer": grant.issuer, "client": {"client_id": grant.client.client_id} as client}:
            return {**earlier, **entry, "client": {**client, **entry["client"]}}
    return entry


def _write(file: Path, entries: dict[str, Any]) -> None:
    """Write a file that only its owner can read, in one step."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
            json.dump(entries, stream, indent=1)
        new.replace(file)
    except OSError:
        new.unlink(missing_ok=True)
        raise
