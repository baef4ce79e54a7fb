"""Claims of the user in the tokens of the proxy: which ones, from where, how long, and in the store."""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from funcmcp import Auth, Context, MCPServer
from funcmcp._auth.authenticator import Challenge
from funcmcp._oauth_proxy import author_functions, user_claims
from funcmcp._oauth_proxy.identity_assertions import ASSERTION_GRANT, IdentityAssertion
from funcmcp._oauth_proxy.refresh_tokens import Refresh, refresh_members, refresh_of
from funcmcp._oauth_proxy.upstream import UpstreamUnavailableError
from funcmcp._oauth_proxy.user_claims import MAX_IN_TOKEN, RESERVED
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp.auth import OIDC, EntraID, Google, Principal, User
from funcmcp.state import KeyRing, MemorySignIns
from funcmcp.testing import Client
from tests.auth.making_tokens import NOW, Clock, key, sign
from tests.oauth_proxy.scripted import APP, ENTRA, GOOGLE, TENANT, UserinfoHTTP, with_keys
from tests.oauth_proxy.stage import KEYS, ScriptedUpstream, Stage, claims_of
from tests.oauth_proxy.test_github import GitHubHTTP, github

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.state import SignInStore

GROUPS = {count: [f"{number:08d}-1111-2222-3333-444444444444" for number in range(count)] for count in (10, 200, 1000)}
RICH = {
    "name": "Ada",
    "email": "ada@example.com",
    "org_id": "org_1",
    "groups": ["kitchen", "bar"],
    "preferred_username": "ada.l",
    "https://example.com/tenant": {"id": 7},
}


async def at_provider(http: UserinfoHTTP | None = None, *, roles_claim: str = "roles", **options: Any) -> Stage:
    """Return a proxy in front of an OpenID provider, with a client."""
    provider = http or UserinfoHTTP()
    upstream = with_keys(OIDC(provider.issuer, "app", "secret", roles_claim=roles_claim, clock=Clock()), provider)
    stage = Stage(upstream=upstream, **options)
    stage.upstream = provider  # type: ignore[assignment]
    return await stage.with_client()


def provider_with(**claims: Any) -> UserinfoHTTP:
    http = UserinfoHTTP()
    http.claims |= claims
    return http


async def principal_of(stage: Stage, tokens: dict[str, Any] | None = None) -> Principal:
    tokens = tokens or await stage.tokens()
    principal = await stage.caller_of(tokens["access_token"])
    assert isinstance(principal, Principal), principal
    return principal


async def refused(stage: Stage) -> Any:
    """Return the status, the error and the sentence with which a sign-in ends."""
    answer = await stage.exchange(await stage.code())
    return answer.status, answer.json["error"], answer.json["error_description"]


async def test_named_claims_of_the_provider_reach_the_tool() -> None:
    names = ["org_id", "groups", "preferred_username", "https://example.com/tenant"]
    principal = await principal_of(await at_provider(provider_with(**RICH), claims=names))
    assert {name: principal.claims[name] for name in names} == {name: RICH[name] for name in names}
    assert "email" not in principal.claims, "the provider has not verified it"


async def test_a_path_names_a_member_of_a_claim() -> None:
    http = provider_with(realm_access={"roles": ["cook"], "secret": 1}, **{"a.b": 1, "a": {"b": 2}})
    principal = await principal_of(await at_provider(http, claims=["realm_access.roles", "a.b", "sub.x"]))
    assert (principal.claims["realm_access.roles"], principal.claims["a.b"]) == (["cook"], 1)
    assert set(principal.claims).isdisjoint({"realm_access", "a", "sub.x"})


async def test_without_the_option_no_more_claims_are_kept() -> None:
    principal = await principal_of(await at_provider(provider_with(**RICH)))
    assert set(principal.claims).isdisjoint({"org_id", "groups", "preferred_username"})


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_computes_claims(*, is_async: bool) -> None:
    def compute(user: User) -> dict[str, Any]:
        return {"unverified_email": user.claims.get("email"), "department": "sales", "none": None, "pair": (1, 2)}

    async def compute_later(user: User) -> dict[str, Any]:
        await asyncio.sleep(0)
        return compute(user)

    stage = await at_provider(provider_with(**RICH), claims=compute_later if is_async else compute)
    claims = (await principal_of(stage)).claims
    assert (claims["unverified_email"], claims["department"], claims["pair"]) == ("ada@example.com", "sales", [1, 2])
    assert "none" not in claims


@pytest.mark.parametrize(("count", "has_store"), [(10, False), (10, True), (200, True), (1000, True)])
async def test_claims_survive_refreshes_and_new_ones_replace_them(count: int, *, has_store: bool) -> None:
    http = provider_with(**RICH, org_name="x")
    http.claims["groups"] = GROUPS[count]
    http.refresh_has_id_token = False
    stage = await at_provider(http, claims=["groups", "org_id"], store=MemorySignIns() if has_store else None)
    tokens = await stage.tokens()
    stage.clock.now += 3000
    again = (await stage.refresh(tokens["refresh_token"])).json
    principal = await principal_of(stage, again)
    assert (principal.claims["groups"], principal.claims["org_id"]) == (GROUPS[count], "org_1")
    http.refresh_has_id_token = True
    http.claims = {name: value for name, value in http.claims.items() if name not in {"org_id", "nonce"}}
    http.claims["groups"] = ["new"]
    last = (await stage.refresh(again["refresh_token"])).json
    principal = await principal_of(stage, last)
    assert (principal.claims["groups"], "org_id" in principal.claims) == (["new"], False)


@pytest.mark.parametrize("has_store", [False, True])
@pytest.mark.parametrize("count", [10, 200, 1000])
async def test_a_token_fits_a_header_or_the_sign_in_is_refused_with_a_reason(
    count: int, caplog: pytest.LogCaptureFixture, *, has_store: bool
) -> None:
    http = provider_with(sub="ada", groups=GROUPS[count])
    store = MemorySignIns() if has_store else None
    stage = await at_provider(http, claims=["groups"], roles_claim="groups", store=store)
    if not has_store and count > 10:
        status, error, text = await refused(stage)
        assert (status, error, text.split(".")[0]) == (
            400,
            "invalid_grant",
            "Your account has more groups, roles or other claims than this server can take",
        )
        assert "event=oauth_refused cause=claims_too_long" in caplog.text
        assert "Use a store" in caplog.text
        return
    tokens = await stage.tokens()
    assert len(tokens["access_token"]) < 7000
    assert "refresh_token" in tokens
    principal = await principal_of(stage, tokens)
    assert (principal.claims["groups"], principal.roles) == (GROUPS[count], frozenset(GROUPS[count]))
    assert ("sign_in" in claims_of(tokens["access_token"])) == (count > 10)
    assert "sign_in" not in principal.claims


async def test_what_is_too_long_for_the_store_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    stage = await at_provider(provider_with(note="x" * 132_000), claims=["note"], store=MemorySignIns())
    assert (await refused(stage))[0] == 400
    assert "bytes; the limit with a store is 131072" in caplog.text


async def test_an_id_token_of_a_thousand_groups_is_read_though_nothing_of_it_is_kept() -> None:
    stage = await at_provider(provider_with(groups=GROUPS[1000]))
    assert len((await stage.tokens())["access_token"]) < 1000


async def long_sign_in(**options: Any) -> tuple[Stage, dict[str, Any], UserinfoHTTP]:
    """Return a sign-in with a store whose claims are too long for a token."""
    http = provider_with(name="Ada", email="a@example.com", groups=GROUPS[200])
    defaults: dict[str, Any] = {"claims": ["groups"], "store": MemorySignIns()}
    stage = await at_provider(http, **defaults | options)
    return stage, await stage.tokens(), http


async def test_another_instance_reads_stored_claims() -> None:
    stage, tokens, _ = await long_sign_in()
    stage.proxy = stage.instance()
    assert (await principal_of(stage, tokens)).claims["groups"] == GROUPS[200]


@pytest.mark.parametrize("how", ["sign_out", "revoke", "reuse", "refused"])
async def test_stored_claims_end_with_their_sign_in(how: str) -> None:
    stage, tokens, http = await long_sign_in()
    if how == "sign_out":
        await stage.proxy.sign_out("ada")
    elif how == "revoke":
        form = f"token={tokens['refresh_token']}&client_id={stage.client_id}".encode()
        headers = {"content-type": "application/x-www-form-urlencoded"}
        await stage.send("POST", "/oauth/revoke", body=form, headers=headers)
    elif how == "reuse":
        await stage.refresh(tokens["refresh_token"])
        stage.clock.now += 100
        await stage.refresh(tokens["refresh_token"])
    else:
        http.used.add("code-1+")
        assert (await stage.refresh(tokens["refresh_token"])).status == 400
    stage.proxy = stage.instance()
    assert await stage.caller_of(tokens["access_token"]) == Challenge(
        "invalid_token", "The sign-in of the token has ended. Sign in again."
    )


async def test_stored_claims_are_cached_for_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, tokens, _ = await long_sign_in()
    await principal_of(stage, tokens)
    await stage.proxy.sign_out("ada")
    assert (await principal_of(stage, tokens)).claims["groups"] == GROUPS[200]
    later = monotonic() + user_claims._CACHE_SECONDS
    monkeypatch.setattr(user_claims, "monotonic", lambda: later)
    assert isinstance(await stage.caller_of(tokens["access_token"]), Challenge)


async def test_few_stored_claims_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_claims, "_MAX_CACHED", 1)
    stage, tokens, _ = await long_sign_in()
    other = await stage.tokens()
    for each in (tokens, other, tokens):
        assert (await principal_of(stage, each)).claims["groups"] == GROUPS[200]
        assert len(stage.proxy._bearer.stored_claims._cached) == 1  # type: ignore[union-attr]


async def test_a_token_with_stored_claims_is_never_recalled_without_them() -> None:
    from hashlib import sha256

    stage, tokens, _ = await long_sign_in()
    digest = sha256(f"Bearer {tokens['access_token']}".encode()).digest()
    assert stage.proxy.recall(digest) is None
    await principal_of(stage, tokens)
    assert stage.proxy.recall(digest) is None


async def test_a_store_that_is_away_is_not_a_bad_token() -> None:
    class Away(MemorySignIns):
        down = False

        async def get(self, key: str) -> str | None:
            if self.down:
                raise StoreUnavailableError
            return await super().get(key)

    store = Away()
    stage, tokens, _ = await long_sign_in(store=store)
    store.down = True
    with pytest.raises(StoreUnavailableError):
        await stage.caller_of(tokens["access_token"])


async def test_stored_claims_are_those_of_the_last_refresh() -> None:
    stage, tokens, http = await long_sign_in()
    http.claims["groups"] = GROUPS[200][1:]
    assert (await stage.refresh(tokens["refresh_token"])).status == 200
    assert (await principal_of(stage, tokens)).claims["groups"] == GROUPS[200][1:]


@pytest.mark.parametrize("options", [{"refresh_seconds": 0}, {}])
async def test_claims_are_stored_for_users_without_refresh_tokens(options: dict[str, Any]) -> None:
    http = provider_with(groups=GROUPS[200])
    stage = await at_provider(http, claims=["groups"], store=MemorySignIns(), **options)
    if not options:  # a client that does not ask for refresh tokens
        await stage.with_client(grant_types=["authorization_code"])
    tokens = await stage.tokens()
    assert "refresh_token" not in tokens
    assert (await principal_of(stage, tokens)).claims["groups"] == GROUPS[200]
    await stage.proxy.sign_out("ada")
    stage.proxy = stage.instance()
    assert isinstance(await stage.caller_of(tokens["access_token"]), Challenge)


async def test_a_token_of_a_server_with_a_store_is_refused_by_one_without() -> None:
    stage, tokens, _ = await long_sign_in()
    stage.proxy = stage.instance(store=None)
    assert isinstance(await stage.caller_of(tokens["access_token"]), Challenge)


async def with_exchange(http: UserinfoHTTP, store: SignInStore | None) -> Stage:
    """Return a proxy whose access tokens also carry the token of the provider."""
    upstream = with_keys(OIDC(http.issuer, "app", "secret", token_exchange=True, clock=Clock()), http)
    stage = Stage(upstream=upstream, claims=["groups"], store=store)
    stage.upstream = http  # type: ignore[assignment]
    return await stage.with_client()


async def test_less_stays_in_a_token_that_also_has_one_of_the_provider() -> None:
    stage = await with_exchange(provider_with(groups=["x" * 1100]), MemorySignIns())
    tokens = await stage.tokens()
    assert "sign_in" in claims_of(tokens["access_token"])
    assert (await principal_of(stage, tokens)).claims["groups"] == ["x" * 1100]


@pytest.mark.parametrize(("count", "lines"), [(100, 0), (3900, 1)])
async def test_a_token_that_is_too_long_for_many_proxies_is_logged_once(
    count: int, lines: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    http = provider_with(name="Ada", email="ada@example.com", groups=["x" * count])
    stage = await with_exchange(http, None)
    token = http.token
    monkeypatch.setattr(http, "token", lambda *sent: (200, token(*sent)[1] | {"access_token": "y" * 2000}))
    for _ in range(2):
        await principal_of(stage)
    assert caplog.text.count("oauth_access_token_long") == lines


# Userinfo


@pytest.mark.parametrize("names", [None, ["department"]])
async def test_userinfo_is_requested_if_the_id_token_lacks_claims(names: list[str] | None) -> None:
    http = UserinfoHTTP()
    claims = {"sub": "ada", "name": "Ada", "email": "ada@example.com", "email_verified": True, "department": "kitchen"}
    http.userinfo = 200, claims
    stage = await at_provider(http, allow=lambda user: (user.email or "").endswith("@example.com"), claims=names)
    tokens = await stage.tokens()
    principal = await principal_of(stage, tokens)
    assert (principal.name, principal.claims["email"], http.userinfo_requests) == ("Ada", "ada@example.com", 1)
    assert principal.claims.get("department") == (None if names is None else "kitchen")
    assert (await stage.refresh(tokens["refresh_token"])).status == 200
    assert http.userinfo_requests == 2, "the ID token of the refresh lacks the claims, too"


async def test_userinfo_is_not_requested_if_nothing_is_missing() -> None:
    http = provider_with(name="Ada", email="ada@example.com", org_id="org_1")
    stage = await at_provider(http, claims=["org_id"])
    await stage.tokens()
    assert http.userinfo_requests == 0


async def test_a_function_gets_all_that_the_provider_says() -> None:
    http = provider_with(name="Ada", email="ada@example.com")
    http.userinfo = 200, {"sub": "ada", "org_id": "org_1"}
    stage = await at_provider(http, claims=lambda user: {"organization": user.claims["org_id"]})
    assert (await principal_of(stage)).claims["organization"] == "org_1"


async def test_roles_come_from_userinfo_if_their_claim_is_configured() -> None:
    http = provider_with(name="Ada", email="ada@example.com")
    http.userinfo = 200, {"sub": "ada", "realm_access": {"roles": ["cook"]}}
    stage = await at_provider(http, roles_claim="realm_access.roles")
    assert (await principal_of(stage)).roles == {"cook"}


async def test_a_signed_answer_is_verified() -> None:
    http = UserinfoHTTP()
    good = {"sub": "ada", "iss": http.issuer, "aud": ["app"], "name": "Ada", "email": "ada@example.com"}
    http.userinfo = 200, sign(good, header={"typ": "JWT"}).encode()
    assert (await principal_of(await at_provider(http))).name == "Ada"


IGNORED = {
    "other subject": {"sub": "eve", "name": "Eve"},
    "no subject": {"name": "Eve"},
    "subject of another type": {"sub": ["ada"], "name": "Eve"},
    "refused": (403, {"error": "insufficient_scope"}),
    "redirect": (302, {"sub": "ada", "name": "Eve"}),
    "an empty answer": b"",
    "html": b"<html>",
    "a list": [{"sub": "ada", "name": "Eve"}],
    "a damaged object": b'{"sub": "ada"',
    "nested too deep": b'{"sub": "ada", "name": ' + b"[" * 100 + b"]" * 100 + b"}",
    "a name twice": b'{"sub": "ada", "name": 1e999}',
    "encrypted": b"a.b.c.d.e",
    "other key": sign({"sub": "ada", "name": "Eve"}, signer=key("RSA", "second")).encode(),
    "shared secret": sign({"sub": "ada"}, signer=key("oct"), algorithm="HS256").encode(),
    "no signature": b"eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.",
    "other issuer": sign({"sub": "ada", "iss": "https://evil.example"}).encode(),
    "other client": sign({"sub": "ada", "aud": "evil"}).encode(),
    "signed, other subject": sign({"sub": "eve", "name": "Eve"}).encode(),
    "not text": b"\xff\xfe\x00",
}


@pytest.mark.parametrize("case", IGNORED)
async def test_an_answer_that_is_not_valid_is_not_used(case: str, caplog: pytest.LogCaptureFixture) -> None:
    http = UserinfoHTTP()
    answer = IGNORED[case]
    http.userinfo = answer if isinstance(answer, tuple) else (200, answer)
    stage = await at_provider(http)
    assert (await principal_of(stage)).name is None
    assert "event=oauth_userinfo_ignored" in caplog.text
    assert "Eve" not in caplog.text


async def slow() -> Any:
    await asyncio.sleep(3600)


AWAY = UpstreamUnavailableError("the answer is too large")


@pytest.mark.parametrize(("options", "status"), [({}, 200), ({"claims": ["x"]}, 503), ({"allow": lambda _: True}, 503)])
async def test_an_outage_counts_where_the_claims_are_needed(options: dict[str, Any], status: int) -> None:
    http = UserinfoHTTP()
    http.userinfo = AWAY
    stage = await at_provider(http, **options)
    assert (await stage.exchange(await stage.code())).status == status


async def test_a_slow_answer_is_an_outage(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(user_claims, "_SECONDS", 0.01)
    http = UserinfoHTTP()
    stage = await at_provider(http, claims=["x"])
    monkeypatch.setattr(http, "fetch", lambda *_: slow())
    assert (await stage.exchange(await stage.code())).status == 503
    assert "no answer in time" in caplog.text


async def test_a_key_of_userinfo_that_is_missing_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    http = UserinfoHTTP()
    http.userinfo = 200, sign({"sub": "ada"}, header={"kid": "new"}).encode()
    stage = await at_provider(http, claims=["x"])
    finds: Callable[..., Any] = stage.options["upstream"]._keys[1].find

    async def find(signed: Any) -> Any:
        return [] if signed.key_id == "new" else await finds(signed)

    monkeypatch.setattr(stage.options["upstream"]._keys[1], "find", find)
    assert (await stage.exchange(await stage.code())).status == 503


@pytest.mark.parametrize("store", [None, MemorySignIns()])
async def test_an_outage_at_a_refresh_leaves_the_user_as_before(store: Any) -> None:
    http = UserinfoHTTP()
    http.userinfo = 200, {"sub": "ada", "name": "Ada", "email": "ada@example.com", "x": 1}
    stage = await at_provider(http, claims=["x"], store=store)
    tokens = await stage.tokens()
    http.userinfo = AWAY
    again = (await stage.refresh(tokens["refresh_token"])).json
    assert (await principal_of(stage, again)).claims["x"] == 1


@pytest.mark.parametrize(
    ("token", "userinfo", "email"),
    [
        ({}, {"email": "a@x", "email_verified": True}, "a@x"),
        ({}, {"email": "a@x"}, None),
        ({"email": "a@x"}, {"email": "b@x", "email_verified": True}, None),
        ({"email": "a@x"}, {"email": "a@x", "email_verified": True}, "a@x"),
        ({"email": "a@x"}, {"email_verified": True}, None),
        ({"email_verified": True}, {"email": "b@x"}, None),
        ({"email_verified": True}, {"email": "b@x", "email_verified": False}, None),
        ({"email": "a@x", "email_verified": False}, {"email": "a@x", "email_verified": True}, None),
        ({"email": "a@x", "email_verified": True}, {"email": "b@x", "email_verified": False}, "a@x"),
        ({"email": None, "email_verified": True}, {"email": "b@x"}, None),
    ],
)
async def test_one_source_never_verifies_the_address_of_the_other(token: Any, userinfo: Any, email: str | None) -> None:
    http = provider_with(**token)
    http.userinfo = 200, {"sub": "ada", **userinfo}
    assert (await principal_of(await at_provider(http))).claims.get("email") == email


async def test_userinfo_replaces_nothing_of_the_id_token() -> None:
    http = provider_with(org_id="org_1")
    http.userinfo = 200, {"sub": "ada", "org_id": "org_2", "iss": "https://evil.example", "name": "Ada", "groups": None}
    principal = await principal_of(await at_provider(http, claims=["org_id", "groups"]))
    assert (principal.claims["org_id"], principal.issuer, principal.name) == (
        "org_1", "https://orders.example.com", "Ada",
    )  # fmt: skip


@pytest.mark.parametrize(
    "document",
    [
        {"userinfo_endpoint": None},
        {"userinfo_endpoint": "http://login.example.com/userinfo"},
        {"userinfo_endpoint": ["https://x"]},
        {"userinfo_endpoint": "https://x.example/userinfo"},
    ],
)
async def test_userinfo_is_requested_only_with_a_token_and_an_endpoint(document: dict[str, Any]) -> None:
    class Tokenless(UserinfoHTTP):
        def token(self, headers: dict[str, str], form: dict[str, str]) -> tuple[int, Any]:
            status, answer = super().token(headers, form)
            is_secure = str(document["userinfo_endpoint"]).startswith("https")
            return status, answer | {"access_token": None if is_secure else "opaque"}

    http = Tokenless(**document)
    assert (await principal_of(await at_provider(http, claims=["x"]))).name is None
    assert http.userinfo_requests == 0


# Names and functions that are not fit


@pytest.mark.parametrize(
    "name",
    [
        *sorted(RESERVED),
        "__proto__",
        "__class__",
        "",
        "x" * 201,
        "a\nb",
        "a\x00",
        "\x1b[2J",
        "a\u202eb",
        5,
        None,
        ["org_id"],
    ],
)
def test_a_name_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match=r"OAuthProxy\.claims can't have"):
        Stage(claims=["org_id", name])


def test_the_address_has_a_reason_of_its_own() -> None:
    with pytest.raises(ValueError, match="unverified_email"):
        Stage(claims=["email"])


@pytest.mark.parametrize("claims", ["org_id", 5, {"org_id": "tenant"}])
def test_the_option_is_a_list_or_a_function(claims: Any) -> None:
    with pytest.raises(TypeError, match="a list of names or a function"):
        Stage(claims=claims)


def cycle() -> Any:
    values: list[Any] = []
    values.append(values)
    return {"x": values}


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


RUBBISH: dict[str, Callable[[User], Any]] = {
    "raises": lambda user: user.claims["missing"],
    "None": lambda _: None,
    "a text": lambda _: "org_id",
    "a list": lambda _: [("org_id", 1)],
    "a reserved name": lambda _: {"scope": "orders.write"},
    "scopes": lambda _: {"scp": "orders.write"},
    "a subject": lambda _: {"sub": "eve"},
    "a client": lambda _: {"azp": "evil"},
    "a key": lambda _: {"cnf": {"jkt": "x"}},
    "a reference": lambda _: {"sign_in": "x"},
    "a prototype": lambda _: {"__proto__": {}},
    "a number as name": lambda _: {5: 1},
    "a control character": lambda _: {"a\r\nb": 1},
    "a set": lambda _: {"x": {1}},
    "an object": lambda _: {"x": object()},
    "bytes": lambda _: {"x": b"1"},
    "not a number": lambda _: {"x": float("nan")},
    "a lone surrogate": lambda _: {"x": "\ud800"},
    "a cycle": lambda _: cycle(),
    "deep": lambda _: {"x": deep(17)},
    "very deep": lambda _: {"x": deep(100_000)},
    "a huge number": lambda _: {"x": 10**5000},
    "hangs": lambda _: slow(),
    "a failing coroutine": lambda _: asyncio.wait_for(slow(), 0),
}


@pytest.mark.parametrize("case", RUBBISH)
async def test_a_function_that_fails_signs_nobody_in(
    case: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(author_functions, "_SECONDS", 0.01)
    stage = await Stage(claims=RUBBISH[case]).with_client()
    status, error, text = await refused(stage)
    assert (status, error) == (503, "temporarily_unavailable")
    assert text == "The server can't determine what it has to know about you. Try again later."
    assert "event=oauth_claims_failed" in caplog.text


@pytest.mark.parametrize("store", [True, None])
async def test_a_function_that_fails_at_a_refresh_does_not_end_the_sign_in(store: bool | None) -> None:
    answers: list[dict[str, Any]] = [{"x": 1}]
    stage = await Stage(claims=lambda _: answers[0], store=store and MemorySignIns()).with_client()
    stage.upstream.rotates = True
    tokens = await stage.tokens()
    value = answers.pop()
    assert (await stage.refresh(tokens["refresh_token"])).status == 503
    answers.append(value)
    assert (await stage.refresh(tokens["refresh_token"])).status == 200


@pytest.mark.parametrize("value", [deep(17), {"x": deep(16)}])
async def test_a_named_claim_that_is_nested_too_deep_is_left_out(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    stage = await at_provider(provider_with(note=value), claims=["note"])
    assert "note" not in (await principal_of(stage)).claims
    assert "event=oauth_claim_missing claim=note: The value can't be kept" in caplog.text


@pytest.mark.parametrize("value", [deep(15), {"a": {"b": ["c", 1, None, True, 1.5]}}, "", 0, False, [], "\u202e<b>"])
async def test_a_claim_of_any_json_value_is_kept_as_it_is(value: Any) -> None:
    for store in (None, MemorySignIns()):
        stage = await at_provider(provider_with(note=value), claims=["note"], store=store)
        tokens = await stage.tokens()
        tokens = (await stage.refresh(tokens["refresh_token"])).json
        assert (await principal_of(stage, tokens)).claims["note"] == value


async def test_a_named_claim_that_is_missing_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    stage = await at_provider(claims=["org_id"])
    for _ in range(2):
        await stage.tokens()
    lines = [record.getMessage() for record in caplog.records if "oauth_claim_missing" in record.getMessage()]
    assert len(lines) == 1
    assert "claim=org_id: neither the ID token nor userinfo of a user has it" in lines[0]


@pytest.mark.parametrize("claims", [{"_claim_names": {"groups": "src1"}}, {"hasgroups": True}])
async def test_groups_that_the_provider_leaves_out_are_named(
    claims: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    await (await at_provider(provider_with(**claims), claims=["groups"])).tokens()
    assert "groups overage" in caplog.text


# Tokens


async def test_stored_names_never_replace_a_claim_of_the_proxy() -> None:
    """A later version may write what this version reserves."""
    from funcmcp._oauth_proxy.access_tokens import AccessTokens

    tokens = AccessTokens("https://i.example", "https://i.example/mcp", KEYS, 60)
    token = tokens.issue(User("ada"), "app", ["read"], signed_in=1, now=1, claims={"scp": "all", "sub": "eve", "x": 1})
    claims = claims_of(token)
    assert (claims["sub"], claims["x"], "scp" in claims) == ("ada", 1, False)


async def test_a_reference_of_another_user_or_of_a_removed_key_opens_nothing() -> None:
    stage, tokens, _ = await long_sign_in()
    stored = stage.proxy._bearer.stored_claims
    assert stored is not None
    reference = claims_of(tokens["access_token"])["sign_in"]
    assert await stored.complete(Principal("eve", claims={"sign_in": reference})) is None
    for forged in ("", "x", reference[:-2], tokens["refresh_token"], tokens["access_token"]):
        assert await stored.complete(Principal("ada", claims={"sign_in": forged})) is None
    stage.proxy = stage.instance(keys=KeyRing([b"another key of this test" * 2]))
    assert isinstance(await stage.caller_of(tokens["access_token"]), Challenge)


async def test_neither_the_store_nor_the_client_reads_stored_claims() -> None:
    store = MemorySignIns()
    _, tokens, _ = await long_sign_in(store=store)
    values = [record.value for record in store._records.values()]
    assert values
    for text in (*values, tokens["access_token"]):
        assert GROUPS[200][5] not in text
    assert set(claims_of(tokens["access_token"])).isdisjoint({"groups", "roles"})


async def test_the_log_has_no_claims(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "funcmcp"):
        await long_sign_in()
        stage = await at_provider(provider_with(secret="ada's salary"), claims=["secret", "other"])
        await stage.tokens()
    assert "salary" not in caplog.text
    assert GROUPS[200][5] not in caplog.text


async def test_the_longest_claims_without_a_store_have_a_refresh_token() -> None:
    http = provider_with(note="x" * (MAX_IN_TOKEN - 20))
    stage = await at_provider(http, claims=["note"])
    tokens = await stage.tokens()
    assert (await stage.refresh(tokens["refresh_token"])).status == 200


# Providers, and what decides


async def test_a_tool_and_its_rule_have_the_claims_over_http() -> None:
    stage = await at_provider(provider_with(org_id="org_1"), claims=["org_id"])
    mcp = MCPServer("Orders", auth=Auth(stage.proxy))

    @mcp.tool(authorize=lambda principal: principal.claims.get("org_id") == "org_1")
    def organization(context: Context) -> str:
        assert context.principal is not None
        return str(context.principal.claims["org_id"])

    tokens = await stage.tokens()
    headers = {"authorization": f"Bearer {tokens['access_token']}"}
    async with Client(mcp, headers=headers) as client:
        assert (await client.call_tool("organization")).text == "org_1"


@pytest.mark.parametrize("has_long_claims", [False, True])
async def test_an_identity_assertion_has_claims(*, has_long_claims: bool) -> None:
    groups = GROUPS[200 if has_long_claims else 10]
    secret = "a secret of the assistant"

    class Asserting(ScriptedUpstream):
        count = 0

        async def identity_assertion(self, assertion: str, audience: str, resource: str) -> IdentityAssertion:
            del assertion, audience, resource
            self.count += 1
            user = User("ada", roles=frozenset({"cook"}), claims={"groups": groups, "scope": "orders.read"})
            return IdentityAssertion(user, "assistant", ("orders.read",), int(NOW), f"assertion {self.count}", 300)

    options: dict[str, Any] = {"identity_assertions": {"assistant": secret}, "claims": ["groups"]}
    stage = await Stage(upstream=Asserting(), store=MemorySignIns(), **options).with_client()
    stage.upstream = stage.options["upstream"]
    interactive = await stage.tokens()
    for _ in range(101):
        answer = await stage.token(
            grant_type=ASSERTION_GRANT, assertion="a", client_id="assistant", client_secret=secret, scope="orders.read"
        )
        assert answer.status == 200, answer.text
    assert ("sign_in" in claims_of(answer.json["access_token"])) == has_long_claims
    principal = await principal_of(stage, answer.json)
    assert (principal.claims["groups"], set(principal.roles)) == (groups, {"cook"})
    assert (await stage.refresh(interactive["refresh_token"])).status == 200, "none of the others ends it"
    await stage.proxy.sign_out("ada")
    stage.proxy = stage.instance()
    assert isinstance(await stage.caller_of(answer.json["access_token"]), Challenge) == has_long_claims


@pytest.mark.parametrize(
    ("claims", "path", "roles", "problem"),
    [
        ({"roles": "cook"}, "roles", {"cook"}, None),
        ({"realm_access": {"roles": ["cook"]}}, "realm_access.roles", {"cook"}, None),
        ({"groups": ["/kitchen"]}, "groups", {"/kitchen"}, None),
        ({}, "roles", set(), None),
        ({}, "groups", set(), "claim=groups: the claim of a user is missing"),
        ({"roles": 5}, "roles", set(), "claim=roles: the claim of a user is not a list of strings or one string"),
    ],
)
@pytest.mark.parametrize("has_userinfo", [False, True])
async def test_roles_are_read_or_named_once_in_the_log(
    claims: Any,
    path: str,
    roles: set[str],
    problem: str | None,
    caplog: pytest.LogCaptureFixture,
    *,
    has_userinfo: bool,
) -> None:
    http = UserinfoHTTP() if has_userinfo else UserinfoHTTP(userinfo_endpoint=None)
    http.claims |= claims
    stage = await at_provider(http, roles_claim=path)
    for _ in range(2):
        assert (await principal_of(stage)).roles == roles
    lines = [record.getMessage() for record in caplog.records if "oauth_no_roles" in record.getMessage()]
    assert len(lines) == (0 if problem is None else 1)
    assert problem is None or problem in lines[0]


async def test_claims_of_github(monkeypatch: pytest.MonkeyPatch) -> None:
    http = GitHubHTTP()
    stage = Stage(upstream=github(http, ["kitchen"]), claims=["login", "organizations"])
    stage.upstream = UserinfoHTTP()  # type: ignore[assignment]

    def sign_in(url: str) -> dict[str, str]:
        return {"code": "code", "state": parse_qs(urlsplit(url).query)["state"][0]}

    monkeypatch.setattr(stage.upstream, "sign_in", sign_in)
    principal = await principal_of(await stage.with_client())
    assert (principal.claims["login"], principal.claims["organizations"]) == ("ada", ["kitchen"])
    assert principal.roles == {"kitchen"}


async def test_claims_of_google() -> None:
    http = UserinfoHTTP(GOOGLE)
    http.claims = {"sub": "1", "name": "Ada", "email": "ada@example.com", "email_verified": True, "hd": "example.com"}
    google = with_keys(Google("app", "secret", domains=["example.com"], clock=Clock()), http)
    stage = Stage(upstream=google, claims=["hd", "locale"])
    stage.upstream = http  # type: ignore[assignment]
    claims = (await principal_of(await stage.with_client())).claims
    assert (claims["hd"], claims["tid"], claims["email"]) == ("example.com", "example.com", "ada@example.com")


async def test_claims_of_entra(caplog: pytest.LogCaptureFixture) -> None:
    http = UserinfoHTTP(ENTRA, APP)
    http.claims = {
        "sub": "1",
        "oid": "2",
        "tid": TENANT,
        "upn": "ada@contoso.com",
        "preferred_username": "ada@contoso.com",
        "email": "ada@contoso.com",
        "groups": GROUPS[10],
    }
    entra = with_keys(EntraID(TENANT, APP, "secret", clock=Clock()), http)
    stage = Stage(upstream=entra, claims=["upn", "preferred_username", "groups", "department"])
    stage.upstream = http  # type: ignore[assignment]
    claims = (await principal_of(await stage.with_client())).claims
    assert (claims["upn"], claims["preferred_username"], claims["groups"]) == (
        "ada@contoso.com", "ada@contoso.com", GROUPS[10],
    )  # fmt: skip
    assert ("email" in claims, http.userinfo_requests) == (False, 0)
    assert "claim=department" in caplog.text


@pytest.mark.parametrize("bad", [[], "x", 5, None])
def test_a_record_whose_claims_can_not_be_read_is_not_read_without_them(bad: Any) -> None:
    refresh = Refresh(User("ada"), "app", ("orders.read",), 1, "upstream", claims={"org_id": "org_1"})
    record = {**refresh_members(refresh), "v": 1}
    assert refresh_of(record) == refresh
    assert refresh_of(record | {"claims": bad}) is None


async def test_names_may_come_from_any_iterable() -> None:
    stage = await at_provider(provider_with(**RICH), claims=(name for name in ["org_id"]))
    assert (await principal_of(stage)).claims["org_id"] == "org_1"


async def test_a_name_that_is_not_configured_any_more_is_left_out_at_the_next_refresh() -> None:
    http = provider_with(**RICH)
    http.refresh_has_id_token = False
    stage = await at_provider(http, claims=["org_id", "groups"])
    tokens = await stage.tokens()
    for names, expected in (("groups", {"groups"}), (None, set())):
        stage.proxy = stage.instance(claims=None if names is None else [names])
        tokens = (await stage.refresh(tokens["refresh_token"])).json
        assert set((await principal_of(stage, tokens)).claims) & {"org_id", "groups"} == expected


async def test_claims_of_a_function_survive_a_refresh_that_says_nothing_new() -> None:
    stage = await Stage(claims=lambda user: {"letters": len(user.subject)}).with_client()
    tokens = await stage.tokens()
    tokens = (await stage.refresh(tokens["refresh_token"])).json
    assert (await principal_of(stage, tokens)).claims["letters"] == 3


async def test_an_outage_at_a_refresh_keeps_the_name_also_where_no_claims_are_needed() -> None:
    http = UserinfoHTTP()
    http.userinfo = 200, {"sub": "ada", "name": "Ada", "email": "ada@example.com", "email_verified": True}
    stage = await at_provider(http)
    tokens = await stage.tokens()
    http.userinfo = AWAY
    principal = await principal_of(stage, (await stage.refresh(tokens["refresh_token"])).json)
    assert (principal.name, principal.claims["email"]) == ("Ada", "ada@example.com")
