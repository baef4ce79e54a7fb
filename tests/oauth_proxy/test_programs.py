"""Programs: tokens for a secret without a user, and what a program or somebody who guesses can't do."""

from __future__ import annotations

import base64
import hashlib
import logging
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp.auth import Auth, Challenge, Principal, Program
from tests.auth.making_proofs import proof
from tests.auth.making_tokens import NOW, key
from tests.oauth_proxy.stage import ISSUER, URL, Stage, claims_of
from tests.oauth_proxy.test_client_authentication import basic, exchange, post

if TYPE_CHECKING:
    from tests.oauth_proxy.stage import Answer

SECRET, NEXT, OTHER = "the-secret-of-reports", "the-next-secret-of-reports", "the-secret-of-the-cook"
PROGRAMS = {
    "reports": Program(secret=[NEXT, SECRET], scopes=["orders.read", "orders.write"], roles=["auditor"]),
    "cook": Program(secret=f"sha256:{hashlib.sha256(OTHER.encode()).hexdigest()}", scopes=["orders.read"]),
}


def program_stage(**options: Any) -> Stage:
    return Stage(**{"programs": PROGRAMS} | options)


async def ask(stage: Stage, authorization: str | None = None, **fields: str | None) -> Answer:
    """Request a token for a program."""
    form = {"grant_type": "client_credentials"} | {name: value for name, value in fields.items() if value is not None}
    return await post(stage, "token", form, authorization)


async def test_a_program_gets_an_access_token_whose_subject_it_is(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="funcmcp")
    stage = program_stage()
    answer = await ask(stage, basic("reports", SECRET), resource=URL)
    assert (answer.status, answer.header("cache-control")) == (200, "no-store")
    tokens = answer.json
    token = tokens.pop("access_token")
    assert tokens == {"token_type": "Bearer", "expires_in": 3600, "scope": "orders.read orders.write"}
    claims = claims_of(token)
    assert claims.pop("jti")
    assert claims == {
        "iss": ISSUER,
        "aud": URL,
        "sub": "reports",
        "client_id": "reports",
        "scope": "orders.read orders.write",
        "iat": NOW,
        "exp": NOW + 3600,
        "name": "reports",
        "roles": ["auditor"],
    }
    principal = await stage.caller_of(token)
    assert isinstance(principal, Principal)
    assert (principal.subject, principal.client_id, sorted(principal.roles)) == ("reports", "reports", ["auditor"])
    assert principal.upstream_tokens is None
    assert caplog.messages == [
        "event=oauth_issued_to_program client=reports user=- scopes=orders.read,orders.write",
    ]


@pytest.mark.parametrize(
    ("name", "secret"), [("reports", SECRET), ("reports", NEXT), ("cook", OTHER)], ids=["old", "new", "digest"]
)
async def test_each_secret_of_a_program_counts_in_both_ways(name: str, secret: str) -> None:
    stage = program_stage()
    assert (await ask(stage, basic(name, secret))).status == 200
    assert (await ask(stage, client_id=name, client_secret=secret)).status == 200
    assert (await ask(stage, basic(name, secret), client_id=name)).status == 200


@pytest.mark.parametrize(
    ("scope", "granted"),
    [
        (None, "orders.read orders.write"),
        ("", "orders.read orders.write"),
        ("orders.write", "orders.write"),
        ("orders.write  orders.read offline_access", "orders.read orders.write"),
        ("offline_access", "orders.read orders.write"),
        ("admin", None),
        ("orders.read admin", None),
        ("orders.read orders.write.all", None),
        ("ORDERS.READ", None),
        ("*", None),
    ],
)
async def test_a_program_gets_scopes_of_its_own_and_no_others(scope: str | None, granted: str | None) -> None:
    answer = await ask(program_stage(), basic("reports", SECRET), scope=scope)
    assert answer.json.get("scope") == granted
    if granted is None:
        assert (answer.status, answer.json["error"]) == (400, "invalid_scope")


async def test_a_program_gets_no_scope_that_only_another_one_has() -> None:
    answer = await ask(program_stage(), basic("cook", OTHER), scope="orders.write")
    assert (answer.status, answer.json["error"]) == (400, "invalid_scope")


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("reports", OTHER),
        ("reports", ""),
        ("reports", SECRET[:-1]),
        ("reports", SECRET + " "),
        ("reports", SECRET.upper()),
        ("reports", f"{SECRET}:"),
        ("reports", "é" * 20),
        ("reports", "\x00"),
        ("reports", hashlib.sha256(SECRET.encode()).hexdigest()),
        ("cook", f"sha256:{hashlib.sha256(OTHER.encode()).hexdigest()}"),
        ("cook", hashlib.sha256(OTHER.encode()).hexdigest()),
        ("reports ", SECRET),
        ("Reports", SECRET),
        ("reports\x00", SECRET),
        ("unknown", SECRET),
        ("", SECRET),
        ("reports:x", SECRET),
        ("__class__", SECRET),
    ],
)
@pytest.mark.parametrize("in_form", [False, True])
async def test_a_wrong_name_or_secret_is_refused_with_one_text(name: str, secret: str, in_form: bool) -> None:
    stage = program_stage()
    if in_form:
        answer = await ask(stage, client_id=name, client_secret=secret)
    else:
        answer = await ask(stage, basic(name, secret))
    assert answer.status == 401
    assert answer.json == {
        "error": "invalid_client",
        "error_description": "The program is unknown, or its secret is missing or wrong.",
    }
    assert answer.header("www-authenticate") == (None if in_form else "Basic")


@pytest.mark.parametrize("encoded", ["reports:the%2Dsecret%2Dof%2Dreports", "reports:the-secret-of-reports"])
async def test_a_secret_may_be_percent_encoded_or_not(encoded: str) -> None:
    stage = program_stage()
    assert (await ask(stage, f"basic {base64.b64encode(encoded.encode()).decode()}")).status == 200


async def test_an_address_that_guesses_gets_no_answer_to_the_right_secret_either() -> None:
    stage = program_stage()
    statuses = [(await ask(stage, basic("reports", f"guess-number-{number}"))).status for number in range(60)]
    assert statuses.count(401) == 30
    assert set(statuses) == {401, 429}
    locked = await ask(stage, basic("reports", SECRET))
    assert (locked.status, locked.json["error"]) == (429, "temporarily_unavailable")
    assert int(locked.header("retry-after") or "0") >= 1
    refused = await post(stage, "revoke", {"token": "x"}, basic("reports", SECRET))
    assert refused.status == 429
    assert (await ask(stage, basic("cook", OTHER))).status == 200  # the name counts, too
    stage.caller = "192.0.2.2"
    assert (await ask(stage, basic("reports", SECRET))).status == 200


async def test_the_log_names_the_program_with_a_wrong_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="funcmcp")
    stage = program_stage()
    for name in ("reports", "unknown", ""):
        await ask(stage, basic(name, "wrong-wrong-wrong"))
    await post(stage, "token", {"grant_type": "refresh_token"}, basic("unknown", SECRET))
    lines = [message.partition(" reason=")[0] for message in caplog.messages]
    assert lines == [
        "event=oauth_wrong_secret client=reports user=- scopes=-",
        "event=oauth_refused cause=client_secret client=- user=-",
        "event=oauth_refused cause=client_unknown client=- user=-",
    ]


async def test_who_guesses_names_locks_no_program_of_the_same_address() -> None:
    stage = program_stage()
    for number in range(60):
        await ask(stage, basic(f"name-{number}", "guess-guess-guess"))
    assert (await ask(stage, basic("reports", SECRET))).status == 200


@pytest.mark.parametrize(
    ("grant_type", "fields"),
    [
        ("authorization_code", {"code": "x", "code_verifier": "x" * 43}),
        ("refresh_token", {"refresh_token": "x"}),
        ("password", {"username": "ada", "password": "secret"}),
    ],
)
async def test_a_program_has_no_other_grant(grant_type: str, fields: dict[str, str]) -> None:
    stage = program_stage()
    answer = await post(stage, "token", {"grant_type": grant_type} | fields, basic("reports", SECRET))
    assert (answer.status, answer.json["error"]) == (400, "unauthorized_client")
    answer = await post(stage, "token", {"grant_type": grant_type} | fields, basic("reports", "wrong-wrong-wrong"))
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")


async def test_a_program_can_neither_sign_users_in_nor_revoke() -> None:
    stage = program_stage()
    stage.client_id = "reports"
    assert (await stage.authorize()).status == 400
    answer = await post(stage, "revoke", {"token": "x"}, basic("reports", SECRET))
    assert (answer.status, answer.json["error"]) == (400, "unauthorized_client")


async def test_clients_of_users_have_no_such_grant() -> None:
    stage = await program_stage().with_client()
    for client_id, secret in ((stage.client_id, SECRET), stage.proxy.client("X", ["https://x.example.com/"])):
        answer = await ask(stage, basic(client_id, secret))
        assert (answer.status, answer.json["error"]) == (400, "unauthorized_client")
    without = await Stage().with_client()
    answer = await ask(without, client_id=without.client_id)
    assert (answer.status, answer.json["error"]) == (400, "unsupported_grant_type")
    assert (await ask(without, basic("reports", SECRET))).status == 401


async def test_a_code_of_a_user_is_of_no_use_to_a_program() -> None:
    stage = await program_stage().with_client()
    code = await stage.code()
    assert (await exchange(stage, code, basic("reports", SECRET))).json["error"] == "unauthorized_client"
    assert (await stage.exchange(code)).status == 200


async def test_a_token_is_for_this_server_only() -> None:
    answer = await ask(program_stage(), basic("reports", SECRET), resource="https://other.example.com/mcp")
    assert (answer.status, answer.json["error"]) == (400, "invalid_target")


async def test_a_program_is_not_the_user_of_the_same_name() -> None:
    programs = {"ada": Program(secret=SECRET, scopes=["orders.read"])}
    stage = await Stage(programs=programs).with_client()
    user = await stage.caller_of((await stage.tokens())["access_token"])
    program = await stage.caller_of((await ask(stage, basic("ada", SECRET))).json["access_token"])
    assert user.subject == program.subject == "ada"
    assert user.key != program.key


async def test_a_program_can_bind_its_token_to_a_key() -> None:
    stage = program_stage(dpop="required")
    assert (await ask(stage, basic("reports", SECRET))).json["error"] == "invalid_dpop_proof"
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "authorization": basic("reports", SECRET),
        "dpop": proof(htu=f"{ISSUER}/oauth/token"),
    }
    answer = await stage.send("POST", "/oauth/token", body=b"grant_type=client_credentials", headers=headers)
    assert answer.json["token_type"] == "DPoP"
    assert claims_of(answer.json["access_token"])["cnf"] == {"jkt": key("P-256").thumbprint()}
    assert isinstance(await stage.caller_of(answer.json["access_token"]), Challenge)


async def test_the_metadata_name_the_grant() -> None:
    for stage, named in ((program_stage(), True), (Stage(), False)):
        metadata = (await stage.send("GET", "/.well-known/oauth-authorization-server")).json
        assert ("client_credentials" in metadata["grant_types_supported"]) is named
    assert Auth(program_stage().proxy).resource is not None


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"secret": "short", "scopes": ["a"]}, ValueError, "at least 16 characters"),
        ({"secret": "with:a:colon:and:more", "scopes": ["a"]}, ValueError, "letters, digits"),
        ({"secret": "with spaces in the middle", "scopes": ["a"]}, ValueError, "letters, digits"),
        ({"secret": "sha256:abc", "scopes": ["a"]}, ValueError, "64 hex digits"),
        ({"secret": [], "scopes": ["a"]}, ValueError, "at least one secret"),
        ({"secret": [SECRET, ""], "scopes": ["a"]}, ValueError, "at least 16 characters"),
        ({"secret": SECRET, "scopes": []}, ValueError, "at least one scope"),
        ({"secret": SECRET, "scopes": "a"}, TypeError, "Program.scopes is a list"),
        ({"secret": SECRET, "scopes": ["a"], "roles": "a"}, TypeError, "Program.roles is a list"),
    ],
)
def test_a_program_that_is_not_safe_is_a_mistake(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Program(**options)


GOOD = Program(secret=SECRET, scopes=["orders.read"])


@pytest.mark.parametrize(
    ("programs", "error", "text"),
    [
        ({}, ValueError, "at least one program"),
        ({"reports": SECRET}, TypeError, "must be a Program; got str"),
        ({"": GOOD}, ValueError, "not the name of a program"),
        ({"1.abc": GOOD}, ValueError, "not the name of a program"),
        ({"https://x.example.com": GOOD}, ValueError, "not the name of a program"),
        ({"a:b": GOOD}, ValueError, "not the name of a program"),
        ({"a" * 101: GOOD}, ValueError, "not the name of a program"),
        ({"a\n": GOOD}, ValueError, "not the name of a program"),
        ({"reports": Program(secret=SECRET, scopes=["admin"])}, ValueError, "does not have: \\['admin'\\]"),
        ({"a": GOOD, "b": GOOD}, ValueError, "different from all others"),
        ({"a": Program(secret=[SECRET, SECRET], scopes=["orders.read"])}, ValueError, "different from all others"),
    ],
)
def test_programs_that_do_not_fit_the_server_are_a_mistake(
    programs: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        Stage(programs=programs)


def test_no_secret_is_in_a_representation() -> None:
    assert SECRET not in repr(GOOD)
    assert SECRET not in repr(vars(Stage(programs={"a": GOOD}).proxy))
