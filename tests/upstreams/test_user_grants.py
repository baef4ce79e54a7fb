"""How a user connects an account of an upstream: once, with a browser, and nobody else."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

from funcmcp import Auth, MCPServer
from funcmcp._auth.owner import owner_of
from funcmcp._grants import connecting
from funcmcp._processes.server import origin_of
from funcmcp._serving.composition import runtime_of
from funcmcp._state.caller_values import ValueOwner
from funcmcp._upstreams import user_grants
from funcmcp._upstreams.auth import Caller, TokenClient
from funcmcp.auth import Principal, UpstreamTokenError
from funcmcp.client import AuthenticationError, Client, HTTPEndpoint
from funcmcp.state import MemoryState, SQLiteState
from funcmcp.upstreams import Upstream, ask_user, static
from tests.auth.making_tokens import Clock
from tests.clients.signing_in import serving_in_thread
from tests.sockets import listen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.upstreams.recording import Recording

HOST = "127.0.0.1"


PRINCIPALS = {"ada-key": Principal("ada", name="Ada <Lovelace>"), "eve-key": Principal("eve", name="Eve")}


async def by_key(headers: Mapping[str, str]) -> Principal | None:
    """Return the caller with a key."""
    return PRINCIPALS.get(headers.get("x-api-key", ""))


class Desk:
    """A server on a port whose users connect accounts of the upstream.

    Attributes:
        origin: Its origin.
        auth: Says who calls the upstream.
        state: Its store.
        clock: The clock of its tokens.
    """

    def __init__(self, origin: str, upstream: Recording, provider: Recording, /, **options: Any) -> None:
        self.origin = origin
        self.state = options.pop("state", None) or MemoryState()
        self.clock = Clock()
        self.auth = ask_user(
            "docs",
            public_url=origin,
            authorization_url=f"{provider.origin}/authorize",
            token_url=provider.token_url,
            client_id="desk",
            client_secret="hush",
            clock=self.clock,
            **{"scopes": ["docs.read"], **options},
        )
        self.mcp = MCPServer("Desk", auth=Auth(by_key, lists="open"), state=self.state)
        self.mcp.mount(Upstream(upstream.url, auth=self.auth), prefix="docs")

    def client(self, name: str = "ada", answers: Any = None, revision: str = "2026-07-28") -> Client:
        """Return a client of a user.

        Args:
            name: The user.
            answers: Answers elicitations; None for a client that has none.
            revision: The revision of the protocol.
        """
        endpoint = HTTPEndpoint(f"{self.origin}/mcp", headers={"x-api-key": f"{name}-key"})
        return Client(endpoint, elicit=answers, revision=revision)


@contextmanager
def serving(upstream: Recording, provider: Recording, /, **options: Any) -> Iterator[Desk]:
    listener = listen(HOST, 0)
    server = Desk(origin_of(HOST, listener), upstream, provider, **options)
    with serving_in_thread(server.mcp, listener):
        yield server


@pytest.fixture
def desk(upstream: Recording, issuer: Recording) -> Iterator[Desk]:
    issuer.refresh_tokens = True
    with serving(upstream, issuer) as server:
        yield server


async def test_a_user_who_has_not_finished_can_call_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "BROWSER_SECONDS", 0.1)

    async def close(_params: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept"}

    assert "Finish connecting" in await search(desk, person=close)
    assert await search(desk, person=Person()) == "found mcp"


class Person:
    """A user who answers elicitations, with a browser.

    Attributes:
        urls: The pages that were opened.
        pages: The last pages that the browser has shown.
        codes: What the user types; None for the code of the page.
        is_willing: Whether the user opens pages.
    """

    def __init__(self, *, is_willing: bool = True) -> None:
        self.urls: list[str] = []
        self.pages: list[httpx2.Response] = []
        self.codes: list[str | None] = []
        self.questions = 0
        self.is_willing = is_willing

    async def __call__(self, params: dict[str, Any]) -> dict[str, Any]:
        if not self.is_willing:
            return {"action": "decline"}
        if params.get("mode") == "url":
            await self.visit(params["url"])
            return {"action": "accept"}
        self.questions += 1
        code = self.codes.pop(0) if self.codes else None
        return {
            "action": "accept",
            "content": dict.fromkeys(params["requestedSchema"]["properties"], code or self.code),
        }

    @property
    def code(self) -> str:
        found = re.search(r"<h1>([A-Z]{4}-[A-Z]{4})</h1>", self.pages[-1].text)
        assert found, self.pages[-1].text
        return found[1]

    async def visit(self, url: str) -> None:
        """Open the page, press its button, and sign in."""
        self.urls.append(url)
        async with httpx2.AsyncClient(follow_redirects=True) as browser:
            self.pages.append(await browser.get(url))
            headers = {"origin": f"{urlsplit(url).scheme}://{urlsplit(url).netloc}"}
            self.pages.append(await browser.post(url, headers=headers))


async def search(desk: Desk, name: str = "ada", person: Any = None, revision: str = "2026-07-28") -> str:
    async with desk.client(name, person, revision) as client:
        return (await client.call_tool("docs_search", {"query": "mcp"})).text


async def test_a_user_connects_an_account_once(desk: Desk, upstream: Recording, issuer: Recording) -> None:
    person = Person()
    assert await search(desk, person=person) == "found mcp"
    assert await search(desk, person=person) == "found mcp"
    assert (len(person.urls), person.questions) == (1, 1)
    assert "Ada &lt;Lovelace&gt;" in person.pages[0].text
    (form,) = issuer.forms
    assert (form["grant_type"], form["code"], form["redirect_uri"]) == (
        "authorization_code",
        "the-code",
        f"{desk.origin}/upstreams/docs/callback",
    )
    assert len(form["code_verifier"]) >= 43
    calls = [call for call in upstream.calls if call.get("mcp-method") == "tools/call"]
    assert {call["authorization"] for call in calls} == {"Bearer token-1"}


async def test_lists_are_read_without_the_account_of_anyone(upstream: Recording, issuer: Recording) -> None:
    with serving(upstream, issuer, lists=static({"x-list": "1"})) as server:
        async with server.client() as client:
            assert [tool["name"] for tool in await client.list_tools()] == ["docs_search"]
    assert {call.get("x-list") for call in upstream.calls} == {"1"}
    assert issuer.forms == []


async def test_the_lists_of_a_user_are_read_with_the_account_once_it_is_connected(
    desk: Desk, upstream: Recording
) -> None:
    principal = PRINCIPALS["ada-key"]
    auth = desk.auth
    assert await auth.headers(Caller(principal)) == {}
    await search(desk, person=Person())
    assert await auth.headers(Caller(principal)) == {"authorization": "Bearer token-1"}
    assert await auth.headers(Caller(PRINCIPALS["eve-key"])) == {}
    refusal = AuthenticationError(401, "Bearer")
    assert await auth.refused(Caller(principal), {"authorization": "Bearer token-1"}, refusal)
    assert await auth.headers(Caller(principal)) == {"authorization": "Bearer token-2"}
    assert await auth.refused(Caller(principal), {"authorization": "Bearer an-older-one"}, refusal)
    for caller in (Caller(), Caller(PRINCIPALS["eve-key"])):
        assert not await auth.refused(caller, {}, refusal)
    assert upstream.calls


async def test_a_client_of_the_handshake_era_is_asked_in_the_call(desk: Desk) -> None:
    person = Person()
    assert await search(desk, person=person, revision="2025-11-25") == "found mcp"
    assert (len(person.urls), person.questions) == (1, 1)


async def test_a_client_that_can_not_open_pages_gets_the_url_as_text(desk: Desk) -> None:
    async with desk.client() as client:
        result = await client.call_tool("docs_search", {"query": "mcp"})
    assert f"Open {desk.origin}/upstreams/docs/connect?flow=" in result.text


async def test_a_user_who_says_no_is_an_error(desk: Desk, issuer: Recording) -> None:
    assert "The user does not connect" in await search(desk, person=Person(is_willing=False))
    assert issuer.forms == []


async def test_a_link_that_somebody_else_has_sent_connects_nothing(desk: Desk, upstream: Recording) -> None:
    """The attacker asks for a link, and the victim opens it. Without the code, the account is not the attacker's."""
    async with desk.client("eve") as attacker:
        text = (await attacker.call_tool("docs_search", {"query": "mcp"})).text
        url = text.partition("Open ")[2].partition(" in a browser")[0]
        victim = Person()
        await victim.visit(url)
        assert "Eve" in victim.pages[0].text  # the page says for whom it is
    for guess in ("AAAA-AAAA", "", "BBBB-BBBB"):
        eve = Person()
        eve.codes = [guess or "-"]
        assert "The code is wrong" in await search(desk, "eve", eve)
    # After three attempts the account of the victim is gone, and the right code is too late.
    late = Person()
    late.codes = [victim.code]
    late.is_willing = False
    assert "does not connect" in await search(desk, "eve", late)
    calls = [call for call in upstream.calls if call.get("mcp-method") == "tools/call"]
    assert calls == []


async def test_a_wrong_code_can_be_corrected(desk: Desk) -> None:
    person = Person()
    person.codes = ["WRNG-WRNG"]
    assert "The code is wrong" in await search(desk, person=person)
    assert await search(desk, person=person) == "found mcp"


async def test_the_accounts_of_users_are_their_own(desk: Desk, upstream: Recording) -> None:
    for name in ("ada", "eve"):
        assert await search(desk, name, Person()) == "found mcp"
    calls = [call["authorization"] for call in upstream.calls if call.get("mcp-method") == "tools/call"]
    assert calls == ["Bearer token-1", "Bearer token-2"]


async def test_the_return_needs_the_cookie_of_the_page_and_serves_once(desk: Desk, issuer: Recording) -> None:
    async with desk.client() as client:
        text = (await client.call_tool("docs_search", {"query": "mcp"})).text
    url = text.partition("Open ")[2].partition(" in a browser")[0]
    origin = {"origin": desk.origin}
    async with httpx2.AsyncClient() as browser, httpx2.AsyncClient() as other:
        assert (await browser.post(url, headers={"origin": "https://evil.example"})).status_code == 403
        assert (await browser.post(url)).status_code == 403
        begun = await browser.post(url, headers=origin)
        assert begun.status_code == 303
        assert "HttpOnly" in begun.headers["set-cookie"]
        query = parse_qs(urlsplit(begun.headers["location"]).query)
        assert query["code_challenge_method"] == ["S256"]
        assert query["scope"] == ["docs.read"]
        callback = f"{desk.origin}/upstreams/docs/callback?state={query['state'][0]}"
        assert (await other.get(f"{callback}&code=evil")).status_code == 400
        for state in ("", "x.y", f"{'0' * 32}.y", query["state"][0][:-1]):
            wrong = f"{desk.origin}/upstreams/docs/callback?state={state}&code=evil"
            assert (await browser.get(wrong)).status_code == 400
        assert (await browser.get(f"{callback}&iss=https://evil.example&code=evil")).status_code == 400
        assert issuer.forms == []
        assert (await browser.get(f"{callback}&code=again")).status_code == 400  # the flow has ended
    assert issuer.forms == []


async def test_the_issuer_in_the_return_is_compared(upstream: Recording, issuer: Recording) -> None:
    with serving(upstream, issuer, issuer="https://login.example.com") as server:
        person = Person()
        assert "another authorization server" in await search(server, person=person)
        assert issuer.forms == []
        issuer.returned = {"code": "c", "iss": "https://login.example.com"}
        assert await search(server, person=Person()) == "found mcp"


async def test_a_return_without_a_code_or_a_token_is_a_page_that_says_so(desk: Desk, issuer: Recording) -> None:
    issuer.returned = {"error": "access_denied"}
    person = Person()
    assert "has not allowed it" in await search(desk, person=person)
    assert "has not allowed it" in person.pages[-1].text
    issuer.returned, issuer.answers = {"code": "c"}, [(400, {"error": "invalid_grant", "error_description": "hush"})]
    assert "has issued no token" in await search(desk, person=person)
    assert person.pages[-1].status_code == 502
    assert "hush" not in person.pages[-1].text


async def test_a_token_is_renewed_and_a_refused_one_too(desk: Desk, upstream: Recording, issuer: Recording) -> None:
    person = Person()
    await search(desk, person=person)
    desk.clock.now += 3600
    assert await search(desk, person=person) == "found mcp"
    upstream.valid = {"token-3"}
    assert await search(desk, person=person) == "found mcp"
    assert [form.get("refresh_token") for form in issuer.forms] == [None, "refresh-1", "refresh-2"]
    assert len(person.urls) == 1


@pytest.mark.parametrize(
    "answer",
    [
        (400, {"error": "invalid_grant"}),
        (400, {"error": "invalid_request", "error_description": "Session expired"}),
        (403, {"error": "mfa_required"}),
        (200, {"ok": False, "error": "invalid_refresh_token"}),
    ],
)
async def test_an_account_that_is_no_longer_connected_is_connected_anew(
    desk: Desk, issuer: Recording, answer: tuple[int, dict[str, object]]
) -> None:
    person = Person()
    await search(desk, person=person)
    desk.clock.now += 3600
    issuer.answers = [answer]
    assert "connected anew" in await search(desk, person=person)
    desk.clock.now += 10
    assert await search(desk, person=person) == "found mcp"
    assert len(person.urls) == 2


async def test_an_outage_of_the_provider_ends_no_account(desk: Desk, issuer: Recording) -> None:
    person = Person()
    await search(desk, person=person)
    desk.clock.now += 3600
    issuer.answers = [(503, {})]
    assert "Try again later" in await search(desk, person=person)
    desk.clock.now += 10
    assert await search(desk, person=person) == "found mcp"
    assert len(person.urls) == 1


async def test_without_a_refresh_token_the_account_is_connected_anew(desk: Desk, issuer: Recording) -> None:
    issuer.refresh_tokens = False
    person = Person()
    await search(desk, person=person)
    desk.clock.now += 3600
    assert "connected anew" in await search(desk, person=person)
    desk.clock.now += 10
    assert await search(desk, person=person) == "found mcp"


async def test_a_scope_that_the_upstream_lacks_is_requested_from_the_user(desk: Desk, upstream: Recording) -> None:
    person = Person()
    await search(desk, person=person)
    upstream.challenge = 'Bearer error="insufficient_scope", scope="docs.write"'
    text = await search(desk, person=person)
    assert "The token lacks: docs.write." in text  # also of the new token
    upstream.challenge = None
    assert await search(desk, person=person) == "found mcp"
    assert len(person.urls) == 2


@pytest.mark.parametrize("scope", [" ".join(f"docs.{number}" for number in range(60)), "x" * 5_000])
async def test_a_challenge_can_not_add_any_number_of_scopes(desk: Desk, upstream: Recording, scope: str) -> None:
    person = Person()
    await search(desk, person=person)
    upstream.challenge = f'Bearer error="insufficient_scope", scope="{scope}"'
    assert "The token lacks: " in await search(desk, person=person)
    upstream.challenge = None
    assert await search(desk, person=person) == "found mcp"
    assert len(person.urls) == 1


@pytest.mark.parametrize("kind", ["grant", "pending", "flow", "scopes", "failure"])
@pytest.mark.parametrize("value", [b"[]", b'{"v": 1}', b'{"v": 2}', b'{"v": 1, "until": "x", "code": 7, "text": null}'])
async def test_a_record_that_this_version_can_not_read_is_none(desk: Desk, kind: str, value: bytes) -> None:
    values = runtime_of(desk.mcp).open_values()
    owner = ValueOwner(f"principal {owner_of(PRINCIPALS['ada-key'])}")
    await values.put(owner, f"upstream docs {kind}", value, 600)
    assert await search(desk, person=Person()) == "found mcp"


async def test_what_a_later_version_adds_to_an_account_is_kept(desk: Desk) -> None:
    person = Person()
    await search(desk, person=person)
    values = runtime_of(desk.mcp).open_values()
    owner = ValueOwner(f"principal {owner_of(PRINCIPALS['ada-key'])}")
    stored = await values.get(owner, "upstream docs grant")
    assert stored is not None
    await values.put(owner, "upstream docs grant", json.dumps({**json.loads(stored), "added": [1]}).encode(), 600)
    desk.clock.now += 3600
    assert await search(desk, person=person) == "found mcp"
    renewed = json.loads(await values.get(owner, "upstream docs grant") or b"")
    assert (renewed["added"], renewed["access_token"]) == ([1], "token-2")


async def test_tokens_in_a_store_are_encrypted(upstream: Recording, issuer: Recording, tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    with serving(upstream, issuer, state=SQLiteState(file)) as server:
        assert await search(server, person=Person()) == "found mcp"
    contents = file.read_bytes()
    assert contents
    assert b"token-1" not in contents


async def test_an_account_that_ended_meanwhile_is_not_revoked_at_an_upstream() -> None:
    assert not await user_grants._Client(TokenClient("https://login.example.com/token", "desk")).revoke("token", None)


async def test_a_caller_without_principal_is_refused(upstream: Recording, issuer: Recording) -> None:
    auth = ask_user(
        "docs",
        public_url="https://desk.example.com",
        authorization_url="https://login.example.com/authorize",
        token_url=issuer.token_url,
        client_id="desk",
    )
    context: Any = object()
    with pytest.raises(UpstreamTokenError, match="needs to know who calls"):
        await auth.headers(Caller(None, context))
    with pytest.raises(RuntimeError, match="mounted"):
        await auth.headers(Caller(Principal("ada"), context))
    assert await auth.headers(Caller()) == {}
    assert upstream.received == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Docs/.."}, "lower-case letters"),
        ({"public_url": "http://desk.example.com"}, "public_url must begin with https"),
        ({"authorization_url": "javascript:alert(1)"}, "authorization_url must be an absolute URL"),
        ({"token_url": "http://login.example.com/token"}, "token endpoint must begin with https"),
    ],
)
def test_options_that_are_not_safe_are_refused(changes: dict[str, str], message: str) -> None:
    options = {
        "name": "docs",
        "public_url": "https://desk.example.com",
        "authorization_url": "https://login.example.com/authorize",
        "token_url": "https://login.example.com/token",
        "client_id": "desk",
    }
    with pytest.raises(ValueError, match=message):
        ask_user(**{**options, **changes})  # type: ignore[arg-type]
