"""Programs: tokens for a secret without a user, and what a program or somebody who guesses can't do."""

from __future__ import annotations

import base64
import hashlib
import logging
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._auth.tokens.compact import MissingKeyError
from funcmcp._oauth_proxy.programs import ASSERTION_TYPE
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp.auth import Auth, Challenge, Principal, Program, StaticKeys
from funcmcp.state import MemorySignIns, SQLiteSignIns
from tests.auth.making_proofs import proof
from tests.auth.making_tokens import NOW, key, public, sign
from tests.oauth_proxy.stage import ISSUER, URL, Stage, claims_of
from tests.oauth_proxy.test_client_authentication import basic, exchange, post

if TYPE_CHECKING:
    from pathlib import Path

    from funcmcp._auth.tokens.keys import VerificationKey
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


@pytest.mark.parametrize("has_store", [False, True])
async def test_no_user_has_the_name_of_a_program_as_subject(
    caplog: pytest.LogCaptureFixture, *, has_store: bool
) -> None:
    """Tools, and grants, know a caller by issuer and subject (RFC 9068 section 5)."""
    caplog.set_level(logging.INFO, logger="funcmcp")
    programs = {"ada": Program(secret=SECRET, scopes=["orders.read"])}
    stage = await Stage(store=MemorySignIns() if has_store else None).with_client()
    refresh_token = (await stage.tokens())["refresh_token"]
    stage.proxy = stage.instance(programs=programs)
    answers = [await stage.exchange(await stage.code()), await stage.refresh(refresh_token)]
    assert [(answer.status, answer.json["error"]) for answer in answers] == [(400, "invalid_grant")] * 2
    assert "cause=subject_of_program" in caplog.text
    assert (await stage.caller_of((await ask(stage, basic("ada", SECRET))).json["access_token"])).subject == "ada"


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
        await stage.with_client()
        answer = await stage.token(grant_type="password", client_id=stage.client_id)
        assert answer.json["error"] == "unsupported_grant_type"
        assert ("client_credentials" in answer.json["error_description"]) is named
    assert Auth(program_stage().proxy).resource is not None


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"secret": "short", "scopes": ["a"]}, ValueError, "at least 16 characters"),
        ({"secret": "with:a:colon:and:more", "scopes": ["a"]}, ValueError, "letters, digits"),
        ({"secret": "with spaces in the middle", "scopes": ["a"]}, ValueError, "letters, digits"),
        ({"secret": "sha256:abc", "scopes": ["a"]}, ValueError, "64 hex digits"),
        ({"secret": [], "scopes": ["a"]}, ValueError, "at least one secret, or keys"),
        ({"scopes": ["a"]}, ValueError, "at least one secret, or keys"),
        ({"keys": StaticKeys(public("oct")), "scopes": ["a"]}, ValueError, "public keys"),
        ({"secret": [SECRET, ""], "scopes": ["a"]}, ValueError, "at least 16 characters"),
        ({"secret": SECRET, "scopes": []}, ValueError, "at least one scope"),
        ({"secret": None, "scopes": ["a"]}, TypeError, "Set the environment variable"),
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
        ([GOOD], TypeError, "is a dict with a Program for each name"),
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
def test_programs_that_do_not_fit_the_server_are_a_mistake(programs: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        Stage(programs=programs)


def test_no_secret_is_in_a_representation() -> None:
    assert SECRET not in repr(GOOD)
    assert SECRET not in repr(vars(Stage(programs={"a": GOOD}).proxy))


# Programs with a key


class Away:
    """A source of keys that can't be reached."""

    async def find(self, token: object) -> list[VerificationKey]:
        raise MissingKeyError("The keys of the issuer are not available.")


KEYED = {
    "signer": Program(keys=StaticKeys(public(), public("P-256", "second")), scopes=["orders.read"]),
    "both": Program(keys=StaticKeys(public("P-256")), secret=SECRET, scopes=["orders.read"]),
    "away": Program(keys=Away(), scopes=["orders.read"]),
    "plain": Program(secret=OTHER, scopes=["orders.read"]),
}
STATEMENT: dict[str, Any] = {
    "iss": "signer",
    "sub": "signer",
    "aud": ISSUER,
    "exp": NOW + 60,
    "iat": NOW,
    "jti": "one",
}


def statement(signer: Any = None, algorithm: str = "RS256", kind: str | None = "JWT", **changes: Any) -> str:
    members = {name: value for name, value in (STATEMENT | changes).items() if value is not None}
    return sign(members, signer=signer, algorithm=algorithm, header={"typ": kind, "kid": None})


async def bring(stage: Stage, text: str, authorization: str | None = None, **fields: str | None) -> Answer:
    """Send a statement to the token endpoint."""
    form = {"client_assertion": text, "client_assertion_type": ASSERTION_TYPE} | fields
    return await ask(stage, authorization, **form)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"aud": [ISSUER]},
        {"aud": f"{ISSUER}/"},
        {"aud": f"{ISSUER}/oauth/token"},
        {"kind": None},
        {"kind": "client-authentication+jwt"},
        {"iat": None},
        {"exp": NOW - 30, "iat": NOW - 100},
        {"exp": NOW + 3600, "nbf": NOW + 30},
        {"signer": key("P-256", "second"), "algorithm": "ES256"},
    ],
)
async def test_a_program_signs_a_statement_in_place_of_a_secret(changes: dict[str, Any]) -> None:
    answer = await bring(Stage(programs=KEYED), statement(**changes))
    assert answer.status == 200, answer.text
    assert claims_of(answer.json["access_token"])["sub"] == "signer"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"aud": "https://other.example.com"}, "another server"),
        ({"aud": [ISSUER, "https://other.example.com"]}, "another server"),
        ({"aud": []}, "another server"),
        ({"aud": None}, "another server"),
        ({"aud": {"x": 1}}, "another server"),
        ({"aud": URL}, "another server"),
        ({"iss": "both"}, "not that of a program"),
        ({"iss": None}, "not that of a program"),
        ({"sub": "unknown", "iss": "unknown"}, "not that of a program"),
        ({"sub": "plain", "iss": "plain"}, "not that of a program"),
        ({"sub": ["signer"], "iss": ["signer"]}, "not that of a program"),
        ({"sub": None}, "not that of a program"),
        ({"sub": "both", "iss": "both"}, "signature"),
        ({"exp": None}, "no expiry"),
        ({"exp": "soon"}, "no expiry"),
        ({"exp": True}, "no expiry"),
        ({"exp": NOW - 60}, "expired"),
        ({"exp": NOW + 3661}, "more than 3600"),
        ({"exp": 2**60}, "no expiry"),
        ({"iat": NOW + 61}, "not valid yet"),
        ({"nbf": NOW + 61}, "not valid yet"),
        ({"nbf": "x"}, "not a number"),
        ({"jti": None}, "needs an id"),
        ({"jti": ""}, "needs an id"),
        ({"jti": 5}, "needs an id"),
        ({"jti": "x" * 513}, "needs an id"),
        ({"signer": key("RSA", "second")}, "signature"),
        ({"signer": key("P-256"), "algorithm": "ES256"}, "signature"),
        ({"signer": key("oct"), "algorithm": "HS256"}, "another algorithm or type"),
        ({"kind": "at+jwt"}, "another algorithm or type"),
        ({"kind": "oauth-id-jag+jwt"}, "another algorithm or type"),
        ({"kind": "dpop+jwt"}, "another algorithm or type"),
    ],
)
async def test_another_statement_is_refused(changes: dict[str, Any], reason: str) -> None:
    answer = await bring(Stage(programs=KEYED), statement(**changes))
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")
    assert reason in answer.json["error_description"]


@pytest.mark.parametrize("text", ["x", "a.b.c", "..", "ey.ey.ey", "é", "x" * 15_000])
async def test_a_text_that_is_no_statement_is_refused(text: str) -> None:
    answer = await bring(Stage(programs=KEYED), text)
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")


@pytest.mark.parametrize("store", [None, SQLiteSignIns, MemorySignIns])
async def test_a_statement_is_good_for_one_request(store: Any, tmp_path: Path) -> None:
    made = store(tmp_path / "sign-ins.db") if store is SQLiteSignIns else store and store()
    stage = Stage(programs=KEYED, store=made)
    assert (await bring(stage, statement())).status == 200
    if store is SQLiteSignIns:  # which other processes reach
        stage.proxy = stage.instance()
    replayed = await bring(stage, statement())
    assert (replayed.status, replayed.json["error"]) == (401, "invalid_client")
    assert (await bring(stage, statement(jti="two"))).status == 200
    if made is not None:
        await made.aclose()


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({"client_id": "signer"}, 200, None),
        ({"client_id": "both"}, 401, "invalid_client"),
        ({"client_secret": SECRET}, 400, "invalid_request"),
        ({"client_id": "both", "client_secret": SECRET}, 400, "invalid_request"),
        ({"client_assertion_type": None}, 401, "invalid_client"),
        ({"client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"}, 401, "invalid_client"),
        ({"authorization": basic("both", SECRET)}, 400, "invalid_request"),
    ],
)
async def test_a_statement_comes_alone(fields: dict[str, Any], status: int, error: str | None) -> None:
    answer = await bring(Stage(programs=KEYED), statement(), **fields)
    assert (answer.status, answer.json.get("error")) == (status, error)


async def test_a_program_may_have_a_key_and_a_secret() -> None:
    stage = Stage(programs=KEYED)
    assert (await ask(stage, basic("both", SECRET))).status == 200
    text = statement(sub="both", iss="both", signer=key("P-256"), algorithm="ES256")
    assert (await bring(stage, text)).status == 200
    assert (await ask(stage, basic("signer", SECRET))).status == 401


async def test_keys_that_are_away_are_no_refusal() -> None:
    answer = await bring(Stage(programs=KEYED), statement(sub="away", iss="away"))
    assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")
    assert answer.header("retry-after") is not None


async def test_a_key_that_makes_a_library_fail_accepts_nothing() -> None:
    class Broken:
        async def find(self, token: object) -> list[VerificationKey]:
            raise RuntimeError("secret")

    stage = Stage(programs={"signer": Program(keys=Broken(), scopes=["orders.read"])})
    answer = await bring(stage, statement())
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")
    assert "secret" not in answer.text


async def test_no_statement_is_lost_when_its_memory_is_full() -> None:
    class Full:
        async def use_once(self, proof: str, caller: str, until: float) -> bool:
            raise StoreUnavailableError

    stage = Stage(programs=KEYED)
    assert stage.proxy._settings.programs is not None
    stage.proxy._settings.programs._used = Full()
    assert (await bring(stage, statement())).status == 503


async def test_the_metadata_name_statements_where_a_program_has_a_key() -> None:
    for stage, named in ((Stage(programs=KEYED), True), (program_stage(), False)):
        metadata = (await stage.send("GET", "/.well-known/oauth-authorization-server")).json
        assert ("private_key_jwt" in metadata["token_endpoint_auth_methods_supported"]) is named
        algorithms = metadata.get("token_endpoint_auth_signing_alg_values_supported", [])
        assert ("ES256" in algorithms) is named
        assert "HS256" not in algorithms
    without = Stage()
    assert (await bring(without, statement())).status == 401
