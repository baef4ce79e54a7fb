"""Attacks on what tokens say about a user: claims, userinfo, addresses, subjects and roles.

Those on a single function are beside its other tests, in `tests/oauth_proxy`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._oauth_proxy import author_functions
from funcmcp._oauth_proxy.user_claims import RESERVED
from funcmcp.auth import Google, Principal, User
from funcmcp.state import MemorySignIns
from tests.auth.making_tokens import Clock
from tests.oauth_proxy.scripted import GOOGLE, UserinfoHTTP, with_keys
from tests.oauth_proxy.stage import ADA, SCOPES, Browser, Stage, claims_of
from tests.oauth_proxy.test_user_claims import at_provider, principal_of, provider_with
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

FORGED: dict[str, Any] = {
    "client_id": "reports",
    "scope": "orders.read orders.write",
    "scp": ["orders.write"],
    "cnf": {"jkt": "x" * 43},
    "sign_in": "a-reference",
    "upstream": "a-token",
    "act": {"sub": "boss"},
    "jti": "chosen",
    "auth_time": 1,
}
PADDING = ".".join(["x" * 60] * 2)
"""Labels of a domain, so that an address is longer than what is kept of a name."""


def long_address(domain: str) -> str:
    """Return an address whose first 200 characters are one at another domain."""
    end = f"@{domain}"
    address = "a" * (200 - len(end)) + end
    assert len(address) == 200
    return f"{address}.{PADDING}.evil.example"


# Claims that the provider, or a function of the author, returns


@pytest.mark.parametrize("name", sorted(FORGED))
async def test_a_claim_of_the_provider_never_becomes_one_of_the_proxy(name: str) -> None:
    forged = provider_with(**{name: FORGED[name]}, roles=["cook"])
    stage = await at_provider(forged, claims=["org_id", "roles_of_org"])
    claims = claims_of((await stage.tokens())["access_token"])
    assert claims.get(name) != FORGED[name]
    principal = await principal_of(stage)
    assert principal.scopes == {"orders.read"}
    assert (principal.claims.get("cnf"), principal.claims.get("act")) == (None, None)


@pytest.mark.parametrize("name", sorted(RESERVED | {"__proto__", "", "a\nb", "\u202ename", "x" * 201}))
async def test_a_function_can_not_return_a_claim_of_the_proxy(name: str) -> None:
    stage = await Stage(claims=lambda user: {name: "forged"}).with_client()
    answer = await stage.exchange(await stage.code())
    assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")


@pytest.mark.parametrize("name", ["\u0455ub", "sub ", "Sub", "ROLES", "cnf.jkt", "sub.x"])
async def test_a_name_that_looks_like_another_one_replaces_nothing(name: str) -> None:
    stage = await Stage(claims=lambda user: {name: ["admin"]}).with_client()
    principal = await principal_of(stage)
    assert (principal.subject, principal.roles) == ("ada", frozenset({"cook"}))
    assert "cnf" not in principal.claims


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        10**5000,
        "\ud800",
        {1: {2: object()}},
        b"bytes",
        {"a", "b"},
        [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]],
        [f"group-{number}" for number in range(20_000)],
        "x" * 1_000_000,
    ],
    ids=lambda value: f"{type(value).__name__}-{len(repr(value)) if type(value) is not int else 5000}",
)
@pytest.mark.parametrize("has_store", [False, True])
async def test_a_value_that_no_token_can_have_ends_in_an_answer(value: Any, *, has_store: bool) -> None:
    store = MemorySignIns() if has_store else None
    stage = await Stage(claims=lambda user: {"groups": value}, store=store).with_client()
    answer = await stage.exchange(await stage.code())
    assert answer.status in {200, 400, 503}
    assert len(answer.text) < 20_000
    if answer.status == 200:
        assert isinstance(await stage.caller_of(answer.json["access_token"]), Principal)


# Userinfo


@pytest.mark.parametrize(
    "userinfo",
    [
        (200, {"sub": "eve", "roles": ["admin"]}),
        (200, {"sub": ["ada"], "roles": ["admin"]}),
        (200, {"sub": "ADA", "roles": ["admin"]}),
        (200, {"sub": "\u0430da", "roles": ["admin"]}),
        (200, {"sub": "ada\u0000", "roles": ["admin"]}),
        (200, {"roles": ["admin"]}),
        (200, [{"sub": "ada", "roles": ["admin"]}]),
        (200, b'{"sub":"ada","roles":["admin"]'),
        (200, b'<html>{"sub":"ada","roles":["admin"]}'),
        (200, b"[" * 5000),
        (200, b'{"sub":"ada","roles":["admin"],"x":' + b"[" * 70 + b"]" * 70 + b"}"),
        (200, b'{"sub":"eve","sub":"ada","roles":["admin"]}'),
        (200, b"eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEiLCJyb2xlcyI6WyJhZG1pbiJdfQ."),
        (200, b"a.b.c.d.e"),
        (200, b"\xff\xfe"),
        (200, b""),
        (302, {"sub": "ada", "roles": ["admin"]}),
        (204, {"sub": "ada", "roles": ["admin"]}),
        (401, {"sub": "ada", "roles": ["admin"]}),
    ],
)
async def test_an_answer_of_userinfo_that_is_not_of_the_user_gives_no_role(userinfo: Any) -> None:
    http = UserinfoHTTP()
    http.userinfo = userinfo
    stage = await at_provider(http)
    answer = await stage.exchange(await stage.code())
    assert (answer.status, answer.json.get("error")) in {(200, None), (503, "temporarily_unavailable")}
    if answer.status == 200:
        assert (await principal_of(stage, answer.json)).roles == frozenset()


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest/meta-data",
        "http://login.example.com/userinfo",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "//evil.example/userinfo",
        "gopher://127.0.0.1:6379/_FLUSHALL",
        "https://",
        "",
        ["https://evil.example"],
        {"url": "https://evil.example"},
    ],
)
async def test_an_address_of_userinfo_that_is_not_secure_gets_no_token(url: Any) -> None:
    http = UserinfoHTTP(userinfo_endpoint=url)
    stage = await at_provider(http)
    await stage.tokens()
    assert all(requested.startswith("https://login.example.com/") for _, requested, _, _ in http.requests)
    assert not http.userinfo_requests


# Addresses, subjects and roles


@pytest.mark.parametrize(
    "address",
    [
        long_address("example.com"),
        long_address("kitchen.example.com"),
        "ada@evil.example\n@example.com",
        "ada@evil.example\u0000@example.com",
        "\u202eada@example.com",
        ["ada@example.com"],
        {"ada@example.com": True},
    ],
    ids=lambda value: f"{value!r:.40}",
)
@pytest.mark.parametrize("source", ["token", "userinfo"])
async def test_no_other_address_becomes_one_of_the_organization(address: Any, source: str) -> None:
    """A long address was cut, so that its beginning was an address of another domain."""

    def allow(user: User) -> bool:
        return user.email is not None and user.email.endswith("example.com")

    verified = {"email": address, "email_verified": True}
    http = provider_with(**verified if source == "token" else {})
    http.userinfo = (200, {"sub": "ada"} | verified)
    stage = await at_provider(http, allow=allow)
    answer = await stage.exchange(await stage.code())
    assert (answer.status, answer.json["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize("mark", ["true", 1, [True], {"a": 1}, None, "yes"])
async def test_only_true_says_that_an_address_is_verified(mark: Any) -> None:
    stage = await at_provider(provider_with(email="ada@example.com", email_verified=mark))
    assert "email" not in (await principal_of(stage)).claims


async def test_a_domain_of_google_is_not_cut() -> None:
    http = provider_with(hd=f"{'x' * 200}.evil.example")
    http.issuer = GOOGLE
    domain = "x" * 200
    google = with_keys(Google("app", "secret", domains=[domain], clock=Clock()), http)
    user = google._user_of
    with pytest.raises(Exception, match="account"):
        user({"sub": "1", "hd": f"{domain}.evil.example"})


@pytest.mark.parametrize("subject", ["x" * 256, "x" * 100_000, "", None, 5, True, ["ada"], {"ada": 1}])
async def test_a_subject_that_no_token_can_have_signs_nobody_in(subject: Any) -> None:
    stage = await at_provider(provider_with(sub=subject))
    answer = await stage.exchange(await stage.code())
    assert (answer.status, answer.json["error"]) == (400, "invalid_grant")
    assert len(answer.text) < 1000


@pytest.mark.parametrize(
    "subject", ["\u0430da", "Ada", "ada ", " ada", "ada\u200b", "ada\n", "a\u0308da", "ada.", "ada\t"]
)
async def test_a_subject_that_looks_like_another_one_is_another_caller(subject: str) -> None:
    stage = await at_provider(provider_with(sub="ada"))
    ada = await principal_of(stage)
    stage.upstream.claims["sub"] = subject  # type: ignore[attr-defined]
    other = await principal_of(stage)
    assert other.subject == subject
    assert (other.issuer, other.subject) != (ada.issuer, ada.subject)


@pytest.mark.parametrize(
    "roles", ["admin", {"admin": False}, {"admin": {}}, ["cook", 5], [["admin"]], [None], None, 5, b"admin", True]
)
def test_roles_of_another_form_are_no_roles(roles: Any) -> None:
    """A string was a set of letters, and an object that says of each role whether the user has it had all of them."""
    with pytest.raises(TypeError, match=r"User\.roles is a set of strings"):
        User("ada", roles=roles)


@pytest.mark.parametrize("roles", [["admin"], ("admin",), {"admin"}, frozenset({"admin"}), {"admin": 1}.keys()])
def test_roles_are_any_collection_of_strings(roles: Any) -> None:
    assert User("ada", roles=roles).roles == frozenset({"admin"})


# Functions of the author


def hanging() -> Callable[[User], Any]:
    async def function(_: User) -> Any:
        await asyncio.Event().wait()

    return function


def failing(text: str) -> Callable[[User], Any]:
    def function(_: User) -> Any:
        try:
            raise KeyError(text)
        except KeyError as error:
            raise ValueError(f"unknown: {text}") from error

    return function


@pytest.mark.parametrize("option", ["allow", "claims"])
async def test_a_function_that_hangs_is_an_outage_and_holds_up_nobody(
    option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(author_functions, "_SECONDS", 0.01)
    stage = await Stage(**{option: hanging()}).with_client()
    async with asyncio.timeout(PATIENCE):
        answer = await stage.exchange(await stage.code())
    assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")


@pytest.mark.parametrize("option", ["allow", "claims"])
async def test_a_function_that_fails_writes_no_line_that_a_user_has_chosen(
    option: str, caplog: pytest.LogCaptureFixture
) -> None:
    stage = await Stage(**{option: failing("Ada\nevent=oauth_issued user=admin")}).with_client()
    answer = await stage.exchange(await stage.code())
    assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")
    assert "Ada" not in answer.text
    assert f"event=oauth_{option}_failed" in caplog.text
    assert "in function" in caplog.text  # the traceback
    assert not [line for line in caplog.text.splitlines() if line.startswith("event=")]


async def test_the_record_of_a_failed_function_has_its_exception(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    stage = await Stage(allow=failing("x")).with_client()
    await stage.exchange(await stage.code())
    (record,) = [record for record in caplog.records if record.exc_info]
    assert record.exc_info is not None
    assert record.exc_info[0] is ValueError
    assert record.exc_text is not None
    assert record.exc_text.index("KeyError") < record.exc_text.index("ValueError: unknown")


@pytest.mark.parametrize(
    "decision", ["orders.read", None, 5, object(), [["orders.read"]], [None], [True], {"orders.read": False}]
)
async def test_a_decision_of_another_form_allows_nothing(decision: Any) -> None:
    stage = await Stage(allow=lambda user: decision).with_client()
    answer = await stage.exchange(await stage.code())
    assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")


@pytest.mark.parametrize("decision", [[], ["admin"], ["orders.read "], ["ORDERS.READ"]])
async def test_scopes_that_the_server_does_not_have_allow_nothing(decision: Any) -> None:
    stage = await Stage(allow=lambda user: decision).with_client()
    answer = await stage.exchange(await stage.code())
    assert (answer.status, answer.json["error"]) == (400, "invalid_grant")


async def test_a_refresh_with_a_store_outlives_a_function_that_fails() -> None:
    """The provider has replaced its token: the sign-in must not end because of the function."""
    fails = False

    def allow(_: User) -> bool:
        if fails:
            raise OSError("the directory is away")
        return True

    stage = await Stage(allow=allow, store=MemorySignIns()).with_client()
    stage.upstream.rotates = True
    refresh_token = (await stage.tokens())["refresh_token"]
    fails = True
    assert (await stage.refresh(refresh_token)).status == 503
    fails = False
    assert (await stage.refresh(refresh_token)).status == 200


async def test_the_page_escapes_what_the_provider_and_the_operator_write() -> None:
    stage = Stage(scopes=SCOPES | {"orders.all": "<img src=x onerror=alert(1)>"})
    stage.upstream.name = "<script>alert(1)</script>\u202e"
    stage.upstream.user = ADA
    await stage.with_client()
    page = await stage.authorize(Browser(), scope=None)
    assert page.status == 200
    assert "<script>" not in page.text
    assert "<img" not in page.text
