"""Clients sign in at servers whose OpenID providers differ: they are signed in, or a sentence names the cause.

The official Python client meets every quirk. The other clients meet those that a client can tell apart: tokens, a
refusal, an outage, an answer in the browser, and each of them again at a refresh.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import subprocess
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
from mcp import Client as OfficialClient
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from pydantic import AnyUrl

from funcmcp import Context, HTTPOptions, MCPServer
from funcmcp._processes.server import origin_of
from funcmcp.auth import OIDC, Auth, OAuthProxy
from funcmcp.client import Client, HTTPEndpoint
from funcmcp.client import SignIn as ClientSignIn
from funcmcp.state import MemorySignIns
from tests import nodejs
from tests.adapters.asgi.test_application_servers import wait_for
from tests.clients.signing_in import serving_in_thread
from tests.clients.test_sign_in import Memory
from tests.patience import PATIENCE
from tests.requirements import require
from tests.serving import REPOSITORY
from tests.sign_in.browsing import BACK, browse, visit
from tests.sign_in.people import HERE, HOST, SCOPES
from tests.sign_in.quirky_provider import CLIENT_ID, GROUPS, QUIRKS, SECRET, QuirkyProvider
from tests.sign_in.test_clients import browser_of, expire
from tests.sign_in.test_node_clients import running
from tests.sockets import free_port, listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.slow("Clients and identity providers of others start for each case.")

OIDC_OPTIONS: dict[str, dict[str, Any]] = {
    "roles_nested": {"roles_claim": "realm_access.roles"},
    "roles_as_object": {"roles_claim": "urn:zitadel:iam:org:project:roles"},
    "no_nonce": {"requires_nonce": False},
}
PROXY_OPTIONS: dict[str, dict[str, Any]] = {
    "userinfo_groups": {"claims": ["groups"]},
    "own_claims": {"claims": ["org_id", "groups", "preferred_username"]},
    "groups_230": {"claims": ["groups"], "store": MemorySignIns()},
    "groups_310": {"claims": ["groups"], "store": MemorySignIns()},
    "groups_without_store": {"claims": ["groups"]},
}


class SignedIn(NamedTuple):
    """The client is signed in, and a tool reads this of its caller.

    Attributes:
        claims: Claims of the principal; None is one that it does not have.
        roles: The roles of the principal.
    """

    claims: Mapping[str, Any] = {}
    roles: tuple[str, ...] = ()


class Refused(NamedTuple):
    """The client is not signed in.

    Attributes:
        error: The error that the client gets.
        text: A pattern of what the client or the browser shows.
        log: A pattern of a line of the log.
        level: The level of the line.
    """

    error: str
    text: str
    log: str
    level: str = "WARNING"


PROFILE = SignedIn({"name": "Ada Lovelace", "email": "ada@example.com"})
WHO = "operator|identity provider"
"""A pattern of who can help."""

FALSE = "The code or the token is invalid"
"""How the sentence begins for a code or a token that is not good. None of the quirks is about these."""

ROWS: dict[str, SignedIn | Refused] = {
    "plain": PROFILE,
    "userinfo_only": PROFILE,
    "userinfo_groups": SignedIn({"groups": ["cooks"]}),
    "no_email": SignedIn({"name": "Ada Lovelace", "email": None}),
    "unverified_email": SignedIn({"name": "Ada Lovelace"}),
    "own_claims": SignedIn({"org_id": "org_1", "groups": ["cooks"], "preferred_username": "ada.l"}),
    "groups_230": SignedIn({"groups": GROUPS[:230]}),
    "groups_310": SignedIn({"groups": GROUPS}),
    "groups_without_store": Refused("invalid_grant", "more groups", "limit without a store is 4096"),
    "roles_as_text": SignedIn(roles=("cook",)),
    "roles_nested": SignedIn(roles=("cook",)),
    "roles_as_object": SignedIn(roles=("cook",)),
    "es512": PROFILE,
    "ps256": PROFILE,
    "eddsa": PROFILE,
    "no_kid": PROFILE,
    "rs256_listed": PROFILE,
    "hs256": Refused("invalid_grant", WHO, "HS256"),
    "encrypted": Refused("invalid_grant", WHO, "encrypted"),
    "no_id_token": Refused("invalid_grant", WHO, "no ID token"),
    "no_nonce": PROFILE,
    "missing_nonce": Refused("invalid_grant", WHO, "nonce"),
    "other_nonce": Refused("invalid_grant", WHO, "another sign-in"),
    "numeric_subject": Refused("invalid_grant", WHO, "sub"),
    "other_party": Refused("invalid_grant", WHO, "another client"),
    "other_issuer": Refused("invalid_grant", WHO, "issuer"),
    "no_refresh_token": PROFILE,
    "refresh_without_id_token": PROFILE,
    "refresh_keeps_token": PROFILE,
    "refresh_mfa_required": PROFILE,
    "refresh_session_expired": PROFILE,
    "refresh_user_disabled": PROFILE,
    "refresh_error_code": PROFILE,
    "refresh_200": PROFILE,
    "refresh_502": PROFILE,
    "refresh_invalid_client": PROFILE,
    "code_mfa_required": Refused("invalid_grant", WHO, "mfa_required"),
    "code_200": Refused("invalid_grant", WHO, "bad_verification_code"),
    "code_invalid_client": Refused("temporarily_unavailable", "operator", "invalid_client", "ERROR"),
    "code_429": Refused("temporarily_unavailable", WHO, "429"),
    "code_502": Refused("temporarily_unavailable", WHO, "502"),
    "code_html": Refused("temporarily_unavailable", WHO, "not JSON"),
    "code_moved": Refused("temporarily_unavailable", WHO, "301"),
    "code_gzip": Refused("temporarily_unavailable", WHO, "JSON|compressed"),
    "denied": Refused("access_denied", WHO, "Ada may not"),
    "login_required": Refused("access_denied", WHO, "login_required"),
    "unknown_scope": Refused("server_error", WHO, "Unknown scope: profile"),
    "busy": Refused("temporarily_unavailable", WHO, "Maintenance until 4"),
    "document_of_other": Refused("temporarily_unavailable", "operator", "configure that one", "ERROR"),
    "document_with_slash": Refused("temporarily_unavailable", "operator", "configure that one", "ERROR"),
    "internal_endpoints": Refused("temporarily_unavailable", "operator", "token_endpoint .* insecure_hosts=", "ERROR"),
    "par_required": PROFILE,
}


class Renewal(NamedTuple):
    """What the client gets for a refresh token.

    Attributes:
        error: The error; None: new tokens.
        log: A pattern of a line of the log.
    """

    error: str | None = None
    log: str = "INFO .*event=oauth_refreshed"


RENEWALS: dict[str, Renewal] = {
    "plain": Renewal(),
    "groups_230": Renewal(),
    "refresh_without_id_token": Renewal(),
    "refresh_keeps_token": Renewal(),
    "refresh_mfa_required": Renewal("invalid_grant", "mfa_required"),
    "refresh_session_expired": Renewal("invalid_grant", "Session expired"),
    "refresh_user_disabled": Renewal("invalid_grant", "User is disabled"),
    "refresh_error_code": Renewal("invalid_grant", "token_inactive"),
    "refresh_200": Renewal("invalid_grant", "invalid_code"),
    "refresh_502": Renewal("temporarily_unavailable", "WARNING .*502"),
    "refresh_invalid_client": Renewal("temporarily_unavailable", "ERROR .*invalid_client"),
}


class Shown(NamedTuple):
    """What a client other than the official Python client does.

    Attributes:
        text: A pattern of what it shows if it is not signed in; empty: it is signed in.
        again: What happens when its access token has expired: "AUTHORIZED" by the refresh token, "REDIRECT" to the
            browser, or a pattern of what it shows.
    """

    text: str = ""
    again: str = ""


CLIENT_ROWS: dict[str, Shown] = {
    "plain": Shown(again="AUTHORIZED"),
    "no_refresh_token": Shown(again="REDIRECT"),
    "hs256": Shown(WHO),
    "code_502": Shown(WHO),
    "denied": Shown("identity provider|denied by the authorization server"),
    "busy": Shown(WHO),
    "refresh_mfa_required": Shown(again="REDIRECT"),
    "refresh_502": Shown(again=WHO),
}


class Many:
    """ASGI applications in one: the path of a request has the name of one of them."""

    def __init__(self, apps: Mapping[str, Any]) -> None:
        self._apps = apps

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            async with AsyncExitStack() as stack:
                await receive()
                for app in self._apps.values():
                    await stack.enter_async_context(_started(app))
                await send({"type": "lifespan.startup.complete"})
                await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        name = next(part for part in scope["path"].split("/") if part in self._apps)
        await self._apps[name](scope, receive, send)


@asynccontextmanager
async def _started(app: Any) -> AsyncIterator[None]:
    received: asyncio.Queue[Any] = asyncio.Queue()
    sent: asyncio.Queue[Any] = asyncio.Queue()
    lifespan = asyncio.create_task(app({"type": "lifespan", "asgi": {"version": "3.0"}}, received.get, sent.put))
    await received.put({"type": "lifespan.startup"})
    assert (await sent.get())["type"] == "lifespan.startup.complete"
    yield
    await received.put({"type": "lifespan.shutdown"})
    await sent.get()
    await lifespan


@dataclass
class Served:
    """The servers of all quirks.

    Attributes:
        origin: The origin of the servers.
        provider: Their identity provider.
        log: The records of the log.
    """

    origin: str
    provider: QuirkyProvider
    log: list[logging.LogRecord] = field(default_factory=list)

    def url(self, quirk: str) -> str:
        return f"{self.origin}/{quirk}/mcp"


def server(origin: str, issuer: str, quirk: str) -> MCPServer:
    """Return a server behind a provider with a quirk."""
    url = f"{origin}/{quirk}/mcp"
    upstream = OIDC(issuer, CLIENT_ID, SECRET, **OIDC_OPTIONS.get(quirk, {}))
    proxy = OAuthProxy(
        url, upstream=upstream, scopes=SCOPES, issuer=f"{origin}/{quirk}", **PROXY_OPTIONS.get(quirk, {})
    )
    mcp = MCPServer("Orders", auth=Auth(proxy, scopes=["orders.read"]), http=HTTPOptions(path=f"/{quirk}/mcp"))

    @mcp.tool
    def who(context: Context) -> dict[str, Any]:
        assert context.principal is not None
        return {"claims": dict(context.principal.claims), "roles": sorted(context.principal.roles)}

    return mcp


class Records(logging.Handler):
    """Keeps the records of the log.

    Attributes:
        records: The records.
    """

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def _recorded() -> Iterator[list[logging.LogRecord]]:
    handler = Records()
    logger = logging.getLogger("funcmcp")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    try:
        yield handler.records
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    here, there = listen(HOST, 0), listen(HOST, 0)
    provider = QuirkyProvider(origin_of(HOST, there))
    origin = origin_of(HOST, here)
    apps = {quirk: server(origin, provider.issuer(quirk), quirk) for quirk in QUIRKS}
    with (
        _recorded() as records,
        serving_in_thread(provider.app, there),
        serving_in_thread(Many(apps), here),
    ):
        yield Served(origin, provider, records)


@dataclass
class Seen:
    """What a sign-in has shown.

    Attributes:
        result: What the tool has returned; None if the client is not signed in.
        texts: What the client and the browser have shown.
        log: The lines of the log.
    """

    result: Any = None
    texts: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    refresh_token: str = ""
    client_id: str = ""

    def check(self, row: SignedIn | Refused) -> None:
        if isinstance(row, SignedIn):
            assert self.result is not None, (self.texts, self.log)
            claims = {name: self.result["claims"].get(name) for name in row.claims}
            assert claims == dict(row.claims), self.log
            assert tuple(self.result["roles"]) == row.roles, self.log
            return
        shown = "\n".join(self.texts)
        assert self.result is None
        assert FALSE not in shown, shown
        assert row.error in shown
        assert re.search(row.text, shown), shown
        assert any(re.search(f"^{row.level} .*{row.log}", line) for line in self.log), self.log


async def sign_in(url: str, log: list[logging.LogRecord], *, user: str = "ada") -> Seen:
    """Sign in with the official client, and call a tool."""
    memory, seen, returned = Memory(), Seen(), {}
    first = len(log)

    async def go(address: str) -> None:
        returned.update(await browse(address, user=user))
        if "error" in returned:
            seen.texts.append(f"{returned['error']} {returned.get('error_description')}")

    async def back() -> AuthorizationCodeResult:
        code, state, issuer = returned.get("code", ""), returned.get("state"), returned.get("iss")
        return AuthorizationCodeResult(code=code, state=state, iss=issuer)

    about = OAuthClientMetadata(client_name="python", redirect_uris=[AnyUrl(BACK)], token_endpoint_auth_method="none")
    auth = OAuthClientProvider(url, about, memory, go, back)
    try:
        async with httpx2.AsyncClient(auth=auth, timeout=PATIENCE) as http:
            transport = streamable_http_client(url, http_client=http)
            async with OfficialClient(transport, mode="auto", read_timeout_seconds=20) as client:
                seen.result = (await client.call_tool("who", {})).structured_content
    except BaseExceptionGroup as error:
        seen.texts.extend(_texts(error))
    if memory.tokens is not None and memory.client is not None:
        seen.refresh_token = memory.tokens.refresh_token or ""
        seen.client_id = memory.client.client_id or ""
    seen.log = _lines(log[first:])
    return seen


def _texts(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [text for inner in error.exceptions for text in _texts(inner)]
    return [str(error)]


@pytest.mark.parametrize("quirk", QUIRKS)
async def test_the_official_client_is_signed_in_or_a_sentence_names_the_cause(served: Served, quirk: str) -> None:
    seen = await sign_in(served.url(quirk), served.log)
    seen.check(ROWS[quirk])


@pytest.mark.parametrize("quirk", RENEWALS)
async def test_a_refusal_at_a_refresh_ends_the_sign_in_and_an_outage_does_not(served: Served, quirk: str) -> None:
    seen = await sign_in(served.url(quirk), served.log)
    expected, first = RENEWALS[quirk], len(served.log)
    form = {"grant_type": "refresh_token", "refresh_token": seen.refresh_token, "client_id": seen.client_id}
    async with httpx2.AsyncClient(timeout=PATIENCE) as http:
        answer = await http.post(f"{served.origin}/{quirk}/oauth/token", data=form)
    assert answer.json().get("error") == expected.error
    assert answer.status_code == {None: 200, "invalid_grant": 400, "temporarily_unavailable": 503}[expected.error]
    assert ("retry-after" in answer.headers) is (answer.status_code == 503)
    lines = _lines(served.log[first:])
    assert any(re.search(expected.log, line) for line in lines), lines


async def test_the_log_says_once_why_nobody_gets_a_refresh_token(served: Served) -> None:
    first = len(served.log)
    for _ in range(2):
        seen = await sign_in(served.url("no_refresh_token"), served.log)
        assert seen.refresh_token == ""
    lines = [line for line in _lines(served.log[first:]) if "refresh token" in line]
    assert len(lines) <= 1, lines


def _lines(records: list[logging.LogRecord]) -> list[str]:
    return [f"{record.levelname} {record.getMessage()}" for record in records]


def _check_clients(shown: list[dict[str, Any]], renewals: Mapping[str, str] = {}) -> None:
    """Check what a program has shown, which differs from the rows in some renewals."""
    assert len(shown) == len(CLIENT_ROWS)
    for (quirk, row), seen in zip(CLIENT_ROWS.items(), shown, strict=True):
        assert seen["is_signed_in"] is (row.text == ""), (quirk, seen)
        if row.text:
            assert re.search(row.text, seen["text"]), (quirk, seen)
            assert FALSE not in seen["text"], (quirk, seen)
        else:
            again = renewals.get(quirk, row.again)
            assert re.search(again, seen["again"]), (quirk, seen)


@pytest.mark.parametrize("sdk", ["v1", "v2"])
def test_a_typescript_client_is_signed_in_or_shows_the_cause(served: Served, sdk: str) -> None:
    urls = [served.url(quirk) for quirk in CLIENT_ROWS]
    command = [str(nodejs.node()), str(HERE / "quirks_client.mjs"), str(nodejs.HOME), sdk, BACK, *urls]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 0, run.stderr
    _check_clients(json.loads(run.stdout))


def test_fastmcps_client_is_signed_in_or_shows_the_cause(served: Served) -> None:
    """It opens the browser after any failure of a refresh."""
    fastmcp = REPOSITORY / ".servers/differential/bin/python"
    python = require("FastMCP (scripts/setup-differential.sh)", str(fastmcp) if fastmcp.exists() else None)
    command = [python, str(HERE / "fastmcp_quirks.py"), *(served.url(quirk) for quirk in CLIENT_ROWS)]
    run = subprocess.run(command, env=browser_of("ada"), capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.returncode == 0, run.stderr
    renewals = dict.fromkeys(["no_refresh_token", "refresh_mfa_required", "refresh_502"], "AUTHORIZED")
    _check_clients(json.loads(run.stdout), renewals)


async def test_our_client_is_signed_in_or_shows_the_cause(served: Served, tmp_path: Path) -> None:
    shown = [await _drive_ours(served.url(quirk), tmp_path / f"{quirk}.json") for quirk in CLIENT_ROWS]
    # The token that the file calls expired still is good.
    _check_clients(shown, {"no_refresh_token": "AUTHORIZED", "refresh_mfa_required": "AUTHORIZED"})


async def _drive_ours(url: str, file: Path) -> dict[str, Any]:
    opened = []

    async def go(address: str) -> None:
        opened.append(address)
        await visit(address, "ada")

    endpoint = HTTPEndpoint(url, sign_in=ClientSignIn(open_browser=go, file=file))
    try:
        async with Client(endpoint) as client:
            await client.call_tool("who")
    except Exception as error:  # noqa: BLE001 - the test reads it
        return {"is_signed_in": False, "text": str(error)}
    expire(file, url)
    try:
        async with Client(endpoint) as client:
            await client.call_tool("who")
    except Exception as error:  # noqa: BLE001 - the test reads it
        return {"is_signed_in": True, "again": str(error)}
    return {"is_signed_in": True, "again": "AUTHORIZED" if len(opened) == 1 else "REDIRECT"}


@pytest.mark.parametrize("quirk", ["plain", "hs256", "code_502", "denied"])
def test_mcp_remote_is_signed_in_or_shows_the_cause(served: Served, quirk: str, tmp_path: Path) -> None:
    client = nodejs.package("mcp-remote") / "dist" / "client.js"
    # Without a path it finds no program to open a browser with, and prints the address.
    environment = {"MCP_REMOTE_CONFIG_DIR": str(tmp_path), "PATH": str(tmp_path), "HOME": str(tmp_path)}
    port = free_port()
    arguments = [str(client), served.url(quirk), str(port), "--host", "127.0.0.1"]
    with running(*arguments, environment=environment) as lines:
        address = lines.find(re.compile(rf"(http://127\.0\.0\.1:\d+/{quirk}/oauth/authorize\?\S+)"))[1]
        wait_for(port)  # the client may print the address before it listens
        asyncio.run(_return(address))
        text = CLIENT_ROWS[quirk].text
        lines.find(re.compile(f"(?i)(error|denied).*({text})" if text else "Connected successfully"))
    assert FALSE not in lines.text


async def _return(address: str) -> None:
    """Sign in, and open the page to which the user returns, whatever it shows."""
    back = parse_qs(urlsplit(address).query)["redirect_uri"][0]
    query = await browse(address, back=back)
    async with httpx2.AsyncClient(timeout=PATIENCE) as browser:
        await browser.get(f"{back}?{urlencode(query)}")
