"""Tokens of a proxy that are bound to a key of the client (DPoP), without and with a store."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._auth.dpop import PROOF_ALGORITHMS
from funcmcp._oauth_proxy.identity_assertions import ASSERTION_GRANT
from funcmcp._oauth_proxy.upstream import User
from funcmcp._state.replays import ENTRY_BYTES
from funcmcp.auth import Auth, Challenge
from funcmcp.state import MemorySignIns
from tests.auth.making_proofs import proof
from tests.auth.making_tokens import NOW, key
from tests.oauth_proxy.other_versions import concealed, value_in
from tests.oauth_proxy.stage import ISSUER, URL, Stage, claims_of
from tests.oauth_proxy.test_identity_assertions import CLAUDE, AssertingUpstream, assertion

if TYPE_CHECKING:
    from joserfc.jwk import Key

    from tests.oauth_proxy.stage import Answer

pytestmark = pytest.mark.lowest("joserfc reads the keys of proofs.")

OWN, OTHER = key("P-256"), key("P-256", "second")
COUNT = itertools.count()


def fresh(signer: Key = OWN, **changes: Any) -> str:
    """Return a proof for the token endpoint that was never used."""
    return proof(signer=signer, **{"jti": f"proof-{next(COUNT)}", "htu": f"{ISSUER}/oauth/token"} | changes)


@pytest.fixture(params=[False, True], ids=["without a store", "with a store"])
async def stage(request: pytest.FixtureRequest) -> Stage:
    return await Stage(dpop="allowed", store=MemorySignIns() if request.param else None).with_client()


def key_of(answer: Answer, kind: str = "DPoP") -> str | None:
    """Return the thumbprint of the key to which the token of an answer is bound."""
    assert answer.status == 200, answer.text
    assert answer.json["token_type"] == kind
    jkt: str | None = claims_of(answer.json["access_token"]).get("cnf", {}).get("jkt")
    return jkt


def error_of(answer: Answer) -> str:
    assert answer.status == 400, answer.text
    error: str = answer.json["error"]
    return error


async def test_a_request_with_a_proof_gets_bound_tokens_and_any_other_one_bearer_tokens(stage: Stage) -> None:
    bound = await stage.exchange(await stage.code(), proof=fresh())
    assert key_of(bound) == OWN.thumbprint()
    identity = await stage.caller_of(bound.json["access_token"])
    assert isinstance(identity, Challenge)
    assert "bound to a key" in identity.description
    free = await stage.exchange(await stage.code())
    assert key_of(free, "Bearer") is None
    assert (await stage.caller_of(free.json["access_token"])).subject == "ada"


async def test_a_bound_refresh_token_needs_a_proof_of_its_key(stage: Stage) -> None:
    answer = await stage.exchange(await stage.code(), proof=fresh())
    token = answer.json["refresh_token"]
    for refused in (await stage.refresh(token), await stage.refresh(token, proof=fresh(OTHER))):
        assert error_of(refused) == "invalid_grant"
    for _ in range(2):
        answer = await stage.refresh(answer.json["refresh_token"], proof=fresh())
        assert key_of(answer) == OWN.thumbprint()
    assert error_of(await stage.refresh(answer.json["refresh_token"], proof=fresh(OTHER))) == "invalid_grant"
    assert len(stage.upstream.refreshes) == 2


async def test_a_proof_at_a_refresh_binds_the_tokens_from_then_on(stage: Stage) -> None:
    free = await stage.exchange(await stage.code())
    bound = await stage.refresh(free.json["refresh_token"], proof=fresh())
    assert key_of(bound) == OWN.thumbprint()
    assert error_of(await stage.refresh(bound.json["refresh_token"])) == "invalid_grant"


async def test_a_code_that_is_bound_to_a_key_needs_a_proof_of_it(stage: Stage) -> None:
    code = await stage.code(dpop_jkt=OWN.thumbprint())
    for wrong in ({}, {"proof": fresh(OTHER)}):
        assert error_of(await stage.exchange(code, **wrong)) == "invalid_grant"
    assert stage.upstream.exchanges == []  # so the code is not used up
    assert key_of(await stage.exchange(code, proof=fresh())) == OWN.thumbprint()
    answer = await stage.authorize(dpop_jkt="not a thumbprint")
    assert (answer.status, answer.query["error"]) == (302, "invalid_request")


async def test_a_wrong_proof_is_refused_and_uses_nothing_up(stage: Stage) -> None:
    code, used = await stage.code(), fresh()
    wrong = [
        "x.y.z",
        fresh(htu=URL),
        fresh(htm="GET"),
        fresh(iat=int(NOW) - 303),
        fresh(header={"jwk": OWN.as_dict(private=True)}),
        f"{fresh()}, {fresh()}",
    ]
    for value in wrong:
        assert error_of(await stage.exchange(code, proof=value)) == "invalid_dpop_proof"
    assert error_of(await stage.exchange(code, proof=used, code_verifier="x" * 50)) == "invalid_grant"
    assert key_of(await stage.exchange(code, proof=used)) == OWN.thumbprint()  # it was not used by the wrong request
    assert error_of(await stage.exchange(await stage.code(), proof=used)) == "invalid_dpop_proof"


async def test_a_repeated_refresh_has_the_same_answer_for_the_same_key() -> None:
    stage = await Stage(dpop="allowed", store=MemorySignIns()).with_client()
    first = await stage.exchange(await stage.code(), proof=fresh())
    answers = [await stage.refresh(first.json["refresh_token"], proof=fresh()) for _ in range(2)]
    assert answers[0].text == answers[1].text
    free = await stage.exchange(await stage.code())
    assert key_of(await stage.refresh(free.json["refresh_token"]), "Bearer") is None
    assert error_of(await stage.refresh(free.json["refresh_token"], proof=fresh())) == "invalid_grant"  # not the same
    free = await stage.exchange(await stage.code())
    assert key_of(await stage.refresh(free.json["refresh_token"], proof=fresh())) == OWN.thumbprint()
    assert error_of(await stage.refresh(free.json["refresh_token"])) == "invalid_grant"  # the answer is bound
    assert error_of(await stage.refresh(free.json["refresh_token"], proof=fresh(OTHER))) == "invalid_grant"


async def test_required_proofs_and_nonces() -> None:
    stage = await Stage(dpop="required", dpop_nonces=True).with_client()
    code = await stage.code()
    assert error_of(await stage.exchange(code)) == "invalid_dpop_proof"
    challenge = await stage.exchange(code, proof=fresh())
    assert error_of(challenge) == "use_dpop_nonce"
    nonce = challenge.header("dpop-nonce")
    assert key_of(await stage.exchange(code, proof=fresh(nonce=nonce))) == OWN.thumbprint()
    other = stage.instance()  # with the same keys
    stage.proxy, instance = other, stage.proxy
    assert key_of(await stage.exchange(await stage.code(), proof=fresh(nonce=nonce))) == OWN.thumbprint()
    assert instance.dpop == "required"
    assert instance.dpop_nonces
    for _ in range(40):  # more than an address may send failed requests
        assert error_of(await stage.exchange("x", proof=fresh())) == "use_dpop_nonce"


async def test_a_client_that_always_has_a_key_gets_no_bearer_tokens() -> None:
    stage = Stage(dpop="allowed")
    answer = await stage.register(dpop_bound_access_tokens=True)
    assert answer.json["dpop_bound_access_tokens"] is True
    stage.client_id = answer.json["client_id"]
    code = await stage.code()
    assert error_of(await stage.exchange(code)) == "invalid_dpop_proof"
    assert stage.upstream.exchanges == []  # so the code is not used up
    bound = await stage.exchange(code, proof=fresh(OTHER))
    assert key_of(bound) == OTHER.thumbprint()
    assert error_of(await stage.refresh(bound.json["refresh_token"])) == "invalid_grant"
    assert error_of(await stage.exchange(await stage.code(dpop_jkt=OWN.thumbprint()))) == "invalid_grant"
    refused = await stage.register(dpop_bound_access_tokens="true")
    assert (refused.status, refused.json["error"]) == (400, "invalid_client_metadata")
    stage = Stage()  # takes no proofs, and does not say that it does
    answer = await stage.register(dpop_bound_access_tokens=True)
    assert "dpop_bound_access_tokens" not in answer.json
    stage.client_id = answer.json["client_id"]
    assert key_of(await stage.exchange(await stage.code()), "Bearer") is None


async def test_proofs_use_the_memory_of_a_user_or_an_address_and_not_of_a_client(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("funcmcp._oauth_proxy.proxy._PROOF_BYTES", 8 * ENTRY_BYTES)  # two proofs for each account
    stage.proxy = stage.instance()
    attacker = [await stage.code() for _ in range(3)]
    statuses = [(await stage.exchange(code, proof=fresh())).status for code in attacker]
    assert statuses == [200, 200, 503]
    stage.caller = "192.0.2.2"
    first = await stage.exchange(await stage.code(), proof=fresh())  # of the same client
    stage.upstream.user = User("bob")
    second = await stage.exchange(await stage.code(), proof=fresh())
    token = first.json["refresh_token"]
    for status in (200, 200, 503):
        answer = await stage.refresh(token, proof=fresh())
        assert answer.status == status
        token = answer.json.get("refresh_token", token)
    assert key_of(await stage.refresh(second.json["refresh_token"], proof=fresh())) == OWN.thumbprint()


async def test_the_metadata_say_what_the_proxy_takes() -> None:
    for mode in (None, "allowed", "required"):
        stage = await Stage(dpop=mode).with_client()
        document = (await stage.send("GET", "/.well-known/oauth-authorization-server")).json
        algorithms = document.get("dpop_signing_alg_values_supported")
        assert algorithms == (None if mode is None else list(PROOF_ALGORITHMS))
        resource = Auth(stage.proxy).resource
        assert resource is not None
        required = resource.document.get("dpop_bound_access_tokens_required")
        assert required == {None: None, "allowed": False, "required": True}[mode]


async def test_without_the_option_proofs_have_no_effect() -> None:
    stage = await Stage().with_client()
    code = await stage.code(dpop_jkt="anything")
    assert key_of(await stage.exchange(code, proof="anything"), "Bearer") is None


async def test_an_identity_assertion_gets_a_bound_token_for_a_proof() -> None:
    stage = Stage(
        upstream=AssertingUpstream(), store=MemorySignIns(), identity_assertions={CLAUDE: None}, dpop="allowed"
    )
    used = fresh()
    for number, kind in ((1, "DPoP"), (2, "Bearer")):
        answer = await stage.token(
            grant_type=ASSERTION_GRANT,
            assertion=assertion(jti=str(number)),
            client_id=CLAUDE,
            resource=URL,
            proof=used if kind == "DPoP" else None,
        )
        assert key_of(answer, kind) == (OWN.thumbprint() if kind == "DPoP" else None)
    text = assertion(jti="3")
    fields = {"grant_type": ASSERTION_GRANT, "assertion": text, "client_id": CLAUDE, "resource": URL}
    assert error_of(await stage.token(**fields, proof=used)) == "invalid_dpop_proof"
    assert key_of(await stage.token(**fields, proof=fresh())) == OWN.thumbprint()  # the assertion was not used up


async def test_bound_records_have_a_version_that_older_processes_can_not_read() -> None:
    stage = await Stage(dpop="allowed").with_client()
    free = await stage.exchange(await stage.code())
    assert value_in("oauth refresh", free.json["refresh_token"])["v"] == 1
    bound = await stage.exchange(await stage.code(), proof=fresh())
    record = value_in("oauth refresh", bound.json["refresh_token"])
    assert (record["v"], record["jkt"]) == (2, OWN.thumbprint())
    later = {**record, "added": 1}
    answer = await stage.refresh(concealed("oauth refresh", later), proof=fresh())
    assert value_in("oauth refresh", answer.json["refresh_token"])["added"] == 1
    code = value_in("oauth code", await stage.code(dpop_jkt=OWN.thumbprint()))
    assert (code["v"], code["jkt"]) == (2, OWN.thumbprint())
    assert value_in("oauth code", await stage.code())["v"] == 1
    for name, send in (("oauth code", stage.exchange), ("oauth refresh", stage.refresh)):
        value = code if name == "oauth code" else record
        wrong: list[dict[str, Any]] = [{"jkt": None}, {"jkt": 1}, {"jkt": []}, {"v": 3}]
        for bad in [value | member for member in wrong]:
            stage.caller = str(id(bad))  # each address may send so many failed requests
            assert error_of(await send(concealed(name, bad), proof=fresh())) == "invalid_grant"
