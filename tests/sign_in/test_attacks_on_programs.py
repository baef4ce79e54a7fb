"""Attacks on programs, clients with a secret, opaque tokens, and several authenticators beside each other.

Those on a single function are beside its other tests, in `tests/auth` and `tests/oauth_proxy`.
"""

from __future__ import annotations

import ast
import asyncio
import base64
import inspect
import json
import textwrap
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from funcmcp._auth.tokens import introspection
from funcmcp._oauth_proxy import client_authentication, clients, programs, token_endpoint
from funcmcp.auth import (
    APIKeys,
    BearerTokens,
    Challenge,
    Principal,
    Program,
    StaticKeys,
    TokenRules,
    UnavailableError,
    first_of,
)
from tests.auth.making_tokens import AUDIENCE, ISSUER, NOW, Clock, bearing, claims, key, public, sign, text
from tests.auth.tokens.test_introspection import ACTIVE, Scripted, scripted
from tests.oauth_proxy.stage import ISSUER as PROXY
from tests.oauth_proxy.stage import KEYS, URL, Stage, claims_of
from tests.oauth_proxy.test_client_authentication import basic, post

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp.auth import Authenticator
    from tests.oauth_proxy.stage import Answer

SECRET = "the-secret-of-reports"
PROGRAMS = {"reports": Program(secret=SECRET, scopes=["orders.read"], roles=["auditor"])}
FORM = {"content-type": "application/x-www-form-urlencoded"}
BACK = "https://platform.example.com/back"
NO_ALGORITHM, RS256 = text(b'{"alg":"none","typ":"at+jwt"}'), text(b'{"alg":"RS256","typ":"at+jwt"}')
GUESSES = [("reports", SECRET), ("reports", "guess-guess-guess-1"), ("x\nevent=y", "guess-guess-guess-2")]


@pytest.fixture
async def stage() -> Stage:
    return await Stage(programs=PROGRAMS).with_client()


async def program_token(stage: Stage) -> str:
    answer = await post(stage, "token", {"grant_type": "client_credentials"}, basic("reports", SECRET))
    token: str = answer.json["access_token"]
    return token


# Secrets


@pytest.mark.parametrize(
    "function",
    [programs.Programs.authenticate, clients.Clients.is_authenticated, APIKeys.__call__],
)
def test_the_comparison_of_secrets_takes_the_same_time_for_all(function: Callable[..., Any]) -> None:
    """It compares digests or equally long texts with all secrets, and leaves no loop early."""
    source = textwrap.dedent(inspect.getsource(function))
    assert "compare_digest" in source
    loops = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.For | ast.ListComp)]
    assert loops
    for loop in loops:
        assert not [node for node in ast.walk(loop) if isinstance(node, ast.Break | ast.Return)]


@pytest.mark.parametrize("module", [programs, client_authentication, clients, token_endpoint, introspection])
def test_no_secret_is_compared_with_an_operator(module: Any) -> None:
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Compare) and any(isinstance(operator, ast.Eq | ast.NotEq) for operator in node.ops):
            names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            assert not {"secret", "sent", "expected", "digest"} & names, ast.unparse(node)


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ({"grant_type": "client_credentials", "client_id": "reports", "client_secret": SECRET}, {}),
        ({"client_secret": SECRET}, {"grant_type": "client_credentials", "client_id": "reports"}),
        ({"client_id": "reports", "client_secret": SECRET}, {"grant_type": "client_credentials"}),
    ],
)
async def test_a_secret_in_the_query_does_not_count(stage: Stage, query: dict[str, str], body: dict[str, str]) -> None:
    answer = await stage.send("POST", "/oauth/token", query, body=urlencode(body).encode(), headers=FORM)
    assert answer.status in {400, 401}
    assert "access_token" not in answer.text


@pytest.mark.parametrize(
    "body",
    [
        f"grant_type=client_credentials&client_id=reports&client_secret=x&client_secret={SECRET}",
        f"grant_type=client_credentials&client_id=x&client_id=reports&client_secret={SECRET}",
        f"grant_type=refresh_token&grant_type=client_credentials&client_id=reports&client_secret={SECRET}",
        f"grant_type=client_credentials&client_id=reports&client_secret={SECRET}&scope=a&scope=orders.read",
        f"grant_type=client_credentials;client_id=reports;client_secret={SECRET}",
        f"grant_type=client_credentials&client_id=reports&client_secret={SECRET}%00",
        f"grant_type=client_credentials&client_id=reports&client_secret=%20{SECRET}",
        f"grant_type=client_credentials&client_id=reports&client_secret%5B%5D={SECRET}",
        f"grant_type=client_credentials&client_id%20=reports&client_secret={SECRET}",
        f"GRANT_TYPE=client_credentials&client_id=reports&client_secret={SECRET}",
        f"grant_type=client_credentials&client_id=reports&client_secret={SECRET}&resource=https://evil.example",
        f"grant_type=CLIENT_CREDENTIALS&client_id=reports&client_secret={SECRET}",
    ],
)
async def test_a_form_that_two_readers_could_read_differently_gets_nothing(stage: Stage, body: str) -> None:
    answer = await stage.send("POST", "/oauth/token", body=body.encode(), headers=FORM)
    assert answer.status in {400, 401}
    assert "access_token" not in answer.text


@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data", "text/plain", ""])
async def test_credentials_in_another_format_get_nothing(stage: Stage, kind: str) -> None:
    body = json.dumps({"grant_type": "client_credentials", "client_id": "reports", "client_secret": SECRET})
    answer = await stage.send("POST", "/oauth/token", body=body.encode(), headers={"content-type": kind})
    assert (answer.status, answer.json["error"]) == (400, "invalid_request")


async def test_no_secret_and_no_guess_is_in_the_log(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    client = stage.proxy.client("Platform", [BACK])
    for name, secret in GUESSES:
        await post(stage, "token", {"grant_type": "client_credentials"}, basic(name, secret))
    await post(stage, "token", {"grant_type": "refresh_token", "refresh_token": "x"}, basic(*client))
    for hidden in (SECRET, "guess-guess", client.client_secret, "\nevent=y"):
        assert hidden not in caplog.text


@pytest.mark.parametrize(
    "name", ["constructor", "__proto__", "keys", "0", "-", "*", "reports%00", "%72eports", "\u0455"]
)
async def test_no_other_spelling_is_a_program(stage: Stage, name: str) -> None:
    answer = await post(stage, "token", {"grant_type": "client_credentials"}, basic(name, SECRET))
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")


async def test_thousands_of_names_and_addresses_use_bounded_memory(stage: Stage) -> None:
    rates = stage.proxy._settings.rates
    for number in range(200):
        stage.caller = f"192.0.2.{number}"
        await post(stage, "token", {"grant_type": "client_credentials"}, basic("reports", "guess-guess-guess"))
        await post(stage, "token", {"grant_type": "client_credentials"}, basic(f"n{number}", "guess-guess-guess"))
    assert len(rates.wrong_secrets) == 200  # not of unknown names; the rates themselves have a limit
    assert rates.wrong_secrets._callers <= 10_000


# What a program's token is good for


async def test_a_token_of_a_program_is_none_for_another_server_of_the_same_keys(stage: Stage) -> None:
    token = await program_token(stage)
    other = stage.instance(url="https://orders.example.com/other")
    identity = await other(bearing(token))
    assert isinstance(identity, Challenge)


@pytest.mark.parametrize(
    "grant",
    [
        {"grant_type": "refresh_token", "refresh_token": "token"},
        {"grant_type": "authorization_code", "code": "token", "code_verifier": "v" * 43},
        {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": "token"},
        {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": "token"},
    ],
)
async def test_a_token_of_a_program_is_no_grant(stage: Stage, grant: dict[str, str]) -> None:
    token = await program_token(stage)
    form = {name: token if value == "token" else value for name, value in grant.items()}
    for client in ({"client_id": stage.client_id}, {"client_id": "reports", "client_secret": SECRET}):
        answer = await post(stage, "token", form | client)
        assert answer.status == 400
        assert "access_token" not in answer.text


@pytest.mark.parametrize(
    "changes",
    [
        {"scope": "orders.read orders.write"},
        {"sub": "ada", "client_id": "reports"},
        {"roles": ["admin"]},
        {"exp": NOW + 1_000_000},
        {"aud": "https://orders.example.com/other"},
    ],
)
async def test_a_changed_token_is_refused(stage: Stage, changes: dict[str, Any]) -> None:
    header, _, signature = (await program_token(stage)).split(".")
    changed = text(json.dumps(claims_of(await program_token(stage)) | changes).encode())
    for forged in (f"{header}.{changed}.{signature}", f"{NO_ALGORITHM}.{changed}.AA"):
        assert isinstance(await stage.caller_of(forged), Challenge)


async def test_a_refresh_token_of_a_user_is_of_no_use_to_a_program_or_a_client_with_a_secret(stage: Stage) -> None:
    refresh = (await stage.tokens())["refresh_token"]
    form = {"grant_type": "refresh_token", "refresh_token": refresh}
    answer = await post(stage, "token", form, basic("reports", SECRET))
    assert answer.json["error"] == "unauthorized_client"
    answer = await post(stage, "token", form, basic(*stage.proxy.client("Platform", [BACK])))
    assert answer.json["error"] == "invalid_grant"
    assert (await stage.refresh(refresh)).status == 200


async def test_a_removed_program_gets_no_further_token(stage: Stage) -> None:
    stage.proxy = stage.instance(programs={"other": Program(secret=SECRET, scopes=["orders.read"])})
    answer = await post(stage, "token", {"grant_type": "client_credentials"}, basic("reports", SECRET))
    assert answer.status == 401


# Ids of clients


async def send_code(stage: Stage, client_id: str, secret: str) -> Answer:
    form = {"grant_type": "refresh_token", "refresh_token": "x", "client_id": client_id, "client_secret": secret}
    return await post(stage, "token", form)


@pytest.mark.parametrize("purpose", ["oauth client", "oauth transaction", "oauth state", "session"])
async def test_a_text_that_is_sealed_for_another_purpose_is_no_client_with_a_secret(stage: Stage, purpose: str) -> None:
    ring = KEYS.of(f"oauth {URL}")
    record = b'{"name":"x","redirect_uris":["https://evil.example/"],"refreshes":true,"v":1}'
    forged = ring.seal(purpose, record)
    client = stage.proxy._settings.clients.read(forged)
    assert client is None or not client.has_secret


@pytest.mark.parametrize("change", ["payload", "code", "version", "swap"])
async def test_a_changed_id_is_unknown(stage: Stage, change: str) -> None:
    client = stage.proxy.client("Platform", [BACK])
    version, payload, code = client.client_id.split(".")
    evil = text(base64.urlsafe_b64decode(payload + "==").replace(b"platform", b"evil----"))
    forged = {
        "payload": f"{version}.{evil}.{code}",
        "code": f"{version}.{payload}.{'A' * len(code)}",
        "version": f"2.{payload}.{code}",
        "swap": f"{version}.{code}.{payload}",
    }[change]
    answer = await send_code(stage, forged, client.client_secret)
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")


async def test_the_secret_of_a_public_client_can_not_be_registered(stage: Stage) -> None:
    answer = await stage.register(
        client_id="reports", client_secret="mine", token_endpoint_auth_method="client_secret_basic", scope="admin"
    )
    assert answer.json["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in answer.json
    assert answer.json["client_id"] != "reports"


# Opaque tokens


@pytest.mark.parametrize(
    "other", ["opaque ", " opaque", "opaque=", "Opaque", "opaqu", "opaque\t", "opaque.", "opaque,opaque"]
)
async def test_the_answer_for_a_token_is_for_no_similar_one(other: str) -> None:
    opaque = scripted()
    assert isinstance(await opaque(bearing("opaque")), Principal)
    identity = await opaque(bearing(other))
    assert isinstance(identity, Challenge) or opaque.asked == ["opaque"]
    if isinstance(identity, Principal):
        assert other.strip(" ") == "opaque"


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "https://other.example.com/mcp"},
        {"aud": [f"{AUDIENCE}/admin"]},
        {"aud": AUDIENCE.upper()},
        {"iss": "https://evil.example.com"},
        {"exp": NOW - 3600},
        {"exp": True},
        {"exp": 1e300},
        {"nbf": NOW + 3600},
        {"token_type": "urn:ietf:params:oauth:token-type:refresh_token"},
        {"sub": ["ada"]},
        {"sub": {"a": 1}},
        {"roles": {"admin": True}},
        {"scope": ["orders.read", 5]},
    ],
)
async def test_a_token_that_is_not_for_this_server_is_never_in_the_cache(changes: dict[str, Any]) -> None:
    opaque = scripted(**changes)
    for _ in range(3):
        assert isinstance(await opaque(bearing("opaque")), Challenge)
    assert len(opaque.asked) == 1
    assert not opaque._verified


async def test_many_members_in_an_answer_change_nothing() -> None:
    members: dict[str, Any] = {f"claim-{number}": "x" * 20 for number in range(1000)}
    opaque = scripted(**members)
    assert isinstance(await opaque(bearing("opaque")), Principal)


@pytest.mark.parametrize(
    "answer",
    [
        b'{"active": true, "active": false, "sub": "ada"}',
        b'{"active": false, "sub": "ada", "ACTIVE": true}',
        b'{"active": {"$ne": null}}',
        b'{"active": NaN}',
        b'{"active": true, "sub": "ada", "exp": Infinity}',
    ],
)
async def test_an_ambiguous_answer_accepts_nothing(answer: bytes) -> None:
    opaque = Scripted({"opaque": answer}, clock=Clock())
    try:
        identity = await opaque(bearing("opaque"))
    except UnavailableError:
        return
    assert isinstance(identity, Challenge)


async def test_a_valid_token_is_kept_for_a_number_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("funcmcp._auth.tokens.presented._CACHE_SIZE", 3)
    opaque = Scripted({f"token-{number}": ACTIVE for number in range(10)}, clock=Clock())
    for number in range(10):
        assert isinstance(await opaque(bearing(f"token-{number}")), Principal)
    assert len(opaque._verified) == 3


async def test_a_flood_of_unknown_tokens_does_not_keep_out_callers_whose_tokens_were_valid() -> None:
    clock = Clock()
    opaque = scripted(clock)
    assert isinstance(await opaque(bearing("opaque")), Principal)
    clock.now += 120
    opaque.gate.clear()
    flood = [asyncio.create_task(opaque(bearing(f"guess-{number}"))) for number in range(introspection._MAX_CONCURRENT)]
    await asyncio.sleep(0)
    with pytest.raises(UnavailableError, match="too many tokens"):
        await opaque(bearing("guess-of-another-one"))
    known = asyncio.create_task(opaque(bearing("opaque")))
    await asyncio.sleep(0)
    opaque.gate.set()
    assert isinstance(await known, Principal)
    assert all(isinstance(identity, Challenge) for identity in await asyncio.gather(*flood))


async def test_few_large_answers_are_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 4096 answers can have 256 KiB."""
    monkeypatch.setattr(introspection, "_MAX_LARGE", 3)
    large = ACTIVE | {"groups": ["x" * 100] * 100}
    opaque = Scripted({f"token-{number}": large for number in range(10)} | {"small": ACTIVE}, clock=Clock())
    for token in ("small", *opaque.answers, "token-9", "small"):
        assert isinstance(await opaque(bearing(token)), Principal)
    assert len(opaque._verified) == 4
    assert len(opaque._large) == 3
    assert len(opaque.asked) == 11


async def test_a_token_that_has_ended_is_no_longer_one_that_was_valid() -> None:
    clock = Clock()
    opaque = scripted(clock)
    await opaque(bearing("opaque"))
    opaque.answers.clear()
    clock.now += 120
    assert isinstance(await opaque(bearing("opaque")), Challenge)
    assert not opaque._verified


# Several authenticators


def beside() -> list[Authenticator]:
    """Return authenticators of two issuers, with keys of the same name."""
    return [
        BearerTokens(ISSUER, AUDIENCE, keys=StaticKeys(public()), clock=Clock()),
        BearerTokens(
            "https://other.example.com",
            AUDIENCE,
            keys=StaticKeys(public("P-256")),
            rules=TokenRules(algorithms=["ES256"]),
            clock=Clock(),
        ),
        APIKeys({"bob": "a-key-of-bob-with-many-characters"}, header="authorization"),
    ]


def unsigned(**members: object) -> str:
    return f"{text(json.dumps(members).encode())}.{text(json.dumps(claims()).encode())}.AAAA"


@pytest.mark.parametrize(
    "token",
    [
        sign(claims(iss="https://other.example.com")),  # signed by the key of the first issuer
        sign(claims(), signer=key("P-256"), algorithm="ES256"),  # by the key of the second one
        sign(claims(iss=[ISSUER, "https://other.example.com"])),
        sign(claims(iss=f"{ISSUER}/")),
        sign(claims(iss=ISSUER.upper())),
        sign(claims(iss=f"{ISSUER}@evil.example.com")),
        sign(claims(iss=None)),
        sign(claims(iss=PROXY)),
        unsigned(alg="none", typ="at+jwt"),
        unsigned(alg="None", typ="at+jwt"),
        unsigned(alg="HS256", typ="at+jwt", kid="first"),
        unsigned(alg="RS256", typ="at+jwt", jku="https://evil.example.com"),
        unsigned(alg="RS256", typ="at+jwt", crit=["x"]),
        unsigned(alg=["RS256"], typ="at+jwt"),
        ".".join([RS256, text(b"[" * 5000), "AAAA"]),
        ".".join([RS256, text(b'{"iss":"a","iss":"' + ISSUER.encode() + b'"}'), "AAAA"]),
        "ey" + "J" * 20_000 + ".e30.AAAA",
        "eyJ.eyJ.eyJ",
        "e30.e30.",
        "a-key-of-bob-with-many-character",
        "A-KEY-OF-BOB-WITH-MANY-CHARACTERS",
        "\udcff",
    ],
)
async def test_no_mixture_of_two_issuers_is_accepted_and_the_order_is_not_seen(token: str) -> None:
    answers = set()
    for step in (1, -1):
        identity = await first_of(*beside()[::step])({"authorization": f"Bearer {token}"})
        assert isinstance(identity, Challenge)
        assert identity.error == "invalid_token"
        answers.add(identity)
    assert len(answers) == 1


async def test_a_refusal_never_repeats_the_token() -> None:
    for token in ("secret-opaque-token", sign(claims(iss="https://secret.example.com"))):
        identity = await first_of(*beside())(bearing(token))
        assert isinstance(identity, Challenge)
        assert "secret" not in identity.description
