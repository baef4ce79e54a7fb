"""Bearer tokens: what is accepted, and that everything else is refused in an orderly way."""

from __future__ import annotations

import hmac
import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funcmcp._auth.authenticator import Challenge
from funcmcp._auth.principal import Principal
from funcmcp._auth.tokens.bearer import BearerTokens
from funcmcp._auth.tokens.claims import TokenRules
from funcmcp._auth.tokens.keys import StaticKeys
from tests.auth.making_tokens import AUDIENCE, ISSUER, NOW, Clock, bearing, claims, key, pem, public, sign, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp._auth.tokens.compact import SignedToken
    from funcmcp._auth.tokens.keys import VerificationKey

GOOD = sign(claims())


def tokens(clock: Clock | None = None, *, keys: StaticKeys | None = None, **rules: Any) -> BearerTokens:
    return BearerTokens(
        ISSUER, AUDIENCE, keys=keys or StaticKeys(public()), rules=TokenRules(**rules), clock=clock or Clock()
    )


def digest_of(header: bytes) -> bytes:
    return sha256(header).digest()


async def refusal(token: str, bearer: BearerTokens | None = None) -> str:
    """Return why a token is refused."""
    identity = await (bearer or tokens())(bearing(token))
    assert isinstance(identity, Challenge)
    assert identity.error == "invalid_token"
    return identity.description


async def accepted(token: str, bearer: BearerTokens | None = None) -> Principal:
    identity = await (bearer or tokens())(bearing(token))
    assert isinstance(identity, Principal), identity
    return identity


async def test_a_good_token_names_its_caller() -> None:
    token_claims = claims(scope=" orders.read  orders.write ", scp=["more"], roles=["admin"], name="Alice", jti="1")
    principal = await accepted(sign(token_claims))
    assert principal == Principal(
        "alice",
        ISSUER,
        "app",
        frozenset({"orders.read", "orders.write", "more"}),
        frozenset({"admin"}),
        token_claims,
        "Alice",
    )
    assert principal.key == (ISSUER, "app", "alice")


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        *(("RSA", f"{name}{bits}") for name in ("RS", "PS") for bits in (256, 384, 512)),
        *(("oct", f"HS{bits}") for bits in (256, 384, 512)),
        ("P-256", "ES256"),
        ("P-384", "ES384"),
        ("P-521", "ES512"),
        ("Ed25519", "EdDSA"),
        ("Ed25519", "Ed25519"),
    ],
)
async def test_every_algorithm_can_be_chosen(kind: str, algorithm: str) -> None:
    bearer = tokens(keys=StaticKeys(public(kind)), algorithms=[algorithm])
    await accepted(sign(claims(), signer=key(kind), algorithm=algorithm), bearer)


@pytest.mark.parametrize("headers", [{}, {"authorization": ""}, {"authorization": "Basic abc"}, {"authorization": "x"}])
async def test_without_a_bearer_token_there_is_nobody(headers: dict[str, str]) -> None:
    assert await tokens()(headers) is None


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_is_read_in_any_case(scheme: str) -> None:
    assert isinstance(await tokens()({"authorization": f"{scheme}  {GOOD} "}), Principal)


@pytest.mark.parametrize("field", ["Bearer", "Bearer ", f"Bearer {GOOD} {GOOD}", "Bearer a b"])
async def test_a_header_that_is_not_bearer_with_one_token_is_an_invalid_request(field: str) -> None:
    identity = await tokens()({"authorization": field})
    assert isinstance(identity, Challenge)
    assert identity.error == "invalid_request"


@pytest.mark.parametrize(
    "token",
    [
        "a",
        "a.b",
        "a.b.c",
        "..",
        "AAAAA.AAAAA.AAAAA",
        f"{GOOD}.x",
        f"{GOOD}=",
        f"{GOOD},{GOOD}",
        GOOD.replace(".", ".\n"),
        "é.é.é",
        "\ud800",
        "\x00",
        "A" * 20_000,
        "." * 20_000,
    ],
)
async def test_what_is_no_token_is_refused(token: str) -> None:
    assert await refusal(token) in {"The token is not a signed JSON Web Token.", "The token is too long."}


@pytest.mark.parametrize("part", [0, 1, 2])
async def test_a_token_with_any_part_of_another_one_is_refused(part: int) -> None:
    mixed = GOOD.split(".")
    other = sign(claims(sub="bob"), header={"jti": "other"}, signer=key("RSA", "second"))
    mixed[part] = other.split(".")[part]
    assert "signature" in await refusal(".".join(mixed))


async def test_a_token_signed_with_another_key_is_refused() -> None:
    assert "signature" in await refusal(sign(claims(), signer=key("RSA", "second")))
    assert "signature" in await refusal(sign(claims(), signer=key("RSA", "second"), header={"kid": "second"}))


async def test_a_token_without_a_key_id_is_checked_with_every_key_that_fits() -> None:
    keys = StaticKeys(public("P-256", "other"), public("RSA", "second"), public())
    await accepted(sign(claims(), header={"kid": None}), tokens(keys=keys))


class TestHeader:
    @pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", "HS256", "RS512", "rs256", "PS256", "A128KW"])
    async def test_an_algorithm_that_is_not_configured_is_refused(self, algorithm: str) -> None:
        assert "algorithm" in await refusal(sign(claims(), header={"alg": algorithm}))

    async def test_a_token_without_a_signature_is_refused(self) -> None:
        header = text(b'{"alg":"none","typ":"at+jwt"}')
        assert isinstance(await tokens()(bearing(f"{header}.{GOOD.split('.')[1]}.")), Challenge)

    async def test_a_public_key_is_never_a_secret(self) -> None:
        """The public key's text as the secret of an HMAC, the oldest trick there is."""
        signed = sign(claims(), header={"alg": "HS256"}).rpartition(".")[0]
        forged = f"{signed}.{text(hmac.digest(pem(), signed.encode(), 'sha256'))}"
        assert "algorithm" in await refusal(forged)
        assert "algorithm" in await refusal(forged, tokens(keys=StaticKeys(pem().decode())))

    @pytest.mark.parametrize("critical", [["exp"], ["b64"], [], None, "b64", {}])
    async def test_extensions_that_must_be_understood_are_refused(self, critical: object) -> None:
        header = json.dumps({"alg": "RS256", "typ": "at+jwt", "b64": False, "crit": critical}).encode()
        assert "extensions" in await refusal(sign(claims(), header=header))

    async def test_keys_that_a_token_brings_along_are_not_looked_at(self) -> None:
        mallory = key("RSA", "mallory")
        brought: dict[str, object] = {
            "jwk": mallory.as_dict(private=False),
            "jku": "https://evil.example/keys",
            "x5u": "https://evil.example/chain",
            "x5c": ["MIIB"],
        }
        for header in (brought, {**brought, "kid": "mallory"}, {**brought, "kid": None}):
            assert "signature" in await refusal(sign(claims(), signer=mallory, header=header))
        await accepted(sign(claims(), header=brought))

    @pytest.mark.parametrize("kind", ["at+jwt", "AT+JWT", "application/at+jwt", "application/AT+jwt"])
    async def test_an_access_token_is_accepted(self, kind: str) -> None:
        await accepted(sign(claims(), header={"typ": kind}))

    @pytest.mark.parametrize("kind", ["JWT", None, "", "application/jwt", "logout+jwt", "id_token", "at+jwt "])
    async def test_another_type_is_refused(self, kind: str | None) -> None:
        assert "type" in await refusal(sign(claims(), header={"typ": kind}))

    @pytest.mark.parametrize("kind", ["JWT", "jwt", "application/jwt", None])
    async def test_plain_tokens_are_accepted_where_that_is_configured(self, kind: str | None) -> None:
        await accepted(sign(claims(), header={"typ": kind}), tokens(types=["at+jwt", "JWT"]))

    @pytest.mark.parametrize("name", ["alg", "typ", "kid"])
    @pytest.mark.parametrize("value", [1, True, ["RS256"], {}])
    async def test_a_member_of_another_type_is_refused(self, name: str, value: object) -> None:
        await refusal(sign(claims(), header={name: value}))

    @pytest.mark.parametrize(
        "header",
        [b"", b"null", b"[]", b'"x"', b"{", b'{"alg":NaN}', b"{}", b'{"alg":"RS256"}x', b"\xff", b"[" * 9000],
    )
    async def test_a_header_that_is_no_json_object_is_refused(self, header: bytes) -> None:
        await refusal(sign(claims(), header=header))


class TestClaims:
    @pytest.mark.parametrize("end", [None, True, "1800000600", [], {}, float("inf"), 1e300, 10**400, -(10**400)])
    async def test_a_token_must_have_an_end_that_is_a_number(self, end: object) -> None:
        payload = json.dumps({**claims(exp=None), **({} if end is None else {"exp": end})}).encode()
        await refusal(sign(payload))

    async def test_null_is_no_end(self) -> None:
        assert "not a number" in await refusal(sign(json.dumps({**claims(), "exp": None}).encode()))

    @pytest.mark.parametrize(("end", "good"), [(NOW - 59, True), (NOW - 59.5, True), (NOW - 60, False), (0, False)])
    async def test_a_token_ends_when_the_leeway_is_over(self, end: float, good: bool) -> None:
        identity = await tokens()(bearing(sign(claims(exp=end))))
        assert isinstance(identity, Principal) is good

    @pytest.mark.parametrize(("start", "good"), [(NOW, True), (NOW + 60, True), (NOW + 61, False)])
    async def test_a_token_starts_when_it_says(self, start: float, good: bool) -> None:
        identity = await tokens()(bearing(sign(claims(nbf=start))))
        assert isinstance(identity, Principal) is good

    @pytest.mark.parametrize("name", ["nbf", "iat"])
    @pytest.mark.parametrize("value", ["0", True, [], {}])
    async def test_a_time_that_is_no_number_is_refused(self, name: str, value: object) -> None:
        assert "not a number" in await refusal(sign(claims(**{name: value})))

    @pytest.mark.parametrize("audience", [AUDIENCE, f"{AUDIENCE}/", ["other", AUDIENCE]])
    async def test_a_token_for_this_server_is_accepted(self, audience: object) -> None:
        await accepted(sign(claims(aud=audience)))

    async def test_a_slash_at_the_end_of_the_configured_audience_does_not_matter_either(self) -> None:
        bearer = BearerTokens(ISSUER, f"{AUDIENCE}/", keys=StaticKeys(public()), clock=Clock())
        await accepted(GOOD, bearer)
        await accepted(sign(claims(aud=f"{AUDIENCE}/")), bearer)

    @pytest.mark.parametrize(
        "audience",
        [
            None,
            "",
            [],
            {},
            {AUDIENCE: 1},
            1,
            True,
            "https://orders.example.com",
            AUDIENCE[:-1],
            f"{AUDIENCE}2",
            f"{AUDIENCE}//",
            AUDIENCE.upper(),
            f" {AUDIENCE}",
            [AUDIENCE, 1],
            [[AUDIENCE]],
            "*",
        ],
    )
    async def test_a_token_for_anybody_else_is_refused(self, audience: object) -> None:
        assert "audience" in await refusal(sign(claims(aud=audience)))

    @pytest.mark.parametrize(
        "issuer", [None, "", f"{ISSUER}/", "https://evil.example", [ISSUER], {ISSUER: 1}, ISSUER.upper(), 1]
    )
    async def test_another_issuer_is_refused(self, issuer: object) -> None:
        assert "issuer" in await refusal(sign(claims(iss=issuer)))

    @pytest.mark.parametrize("subject", [None, "", 1, True, ["alice"], {}])
    async def test_a_token_of_nobody_is_refused(self, subject: object) -> None:
        assert "subject" in await refusal(sign(claims(sub=subject)))

    @pytest.mark.parametrize(
        "mark", [{"nonce": "n"}, {"at_hash": "h"}, {"c_hash": "h"}, {"typ": "ID"}, {"token_use": "id"}]
    )
    async def test_an_id_token_is_refused(self, mark: dict[str, object]) -> None:
        assert "ID token" in await refusal(sign(claims(**mark), header={"typ": "JWT"}), tokens(types=["JWT"]))

    async def test_claims_can_be_required(self) -> None:
        bearer = tokens(required={"tid": "t", "jti": None}, any_of=[["scp", "roles"]])
        await accepted(sign(claims(tid="t", jti="1", scp="read")), bearer)
        await accepted(sign(claims(tid="t", jti="1", roles=["reader"])), bearer)
        for wrong in ({"tid": "u"}, {"tid": None}, {"tid": ["t"]}, {"jti": None}, {"scp": None}, {"scp": ""}):
            text = await refusal(sign(claims(**{"tid": "t", "jti": "1", "scp": "read", **wrong})), bearer)
            assert ("none of the claims scp, roles" if "scp" in wrong else "required") in text

    @pytest.mark.parametrize("name", ["scope", "scp", "roles"])
    @pytest.mark.parametrize("value", [1, True, {"a": 1}, ["a", 1]])
    async def test_scopes_and_roles_of_another_type_are_refused(self, name: str, value: object) -> None:
        assert "claim" in await refusal(sign(claims(**{name: value})))

    async def test_roles_can_come_in_a_claim_of_another_name(self) -> None:
        principal = await accepted(sign(claims(groups=["a"], roles=["b"])), tokens(roles_claim="groups"))
        assert principal.roles == {"a"}

    @pytest.mark.parametrize("name", ["client_id", "azp", "appid"])
    async def test_the_client_is_named_by_one_of_three_claims(self, name: str) -> None:
        principal = await accepted(sign(claims(**{"client_id": None, name: "app-1"})))
        assert principal.client_id == "app-1"

    @pytest.mark.parametrize("payload", [b"", b"null", b"[]", b"{", b"\xff\xfe", b"[" * 9000, b'{"exp":1e999}', b"{}"])
    async def test_a_payload_that_is_no_json_object_is_refused(self, payload: bytes) -> None:
        await refusal(sign(payload))


class CountingKeys(StaticKeys):
    """Keys that count how often they are asked for."""

    asked = 0

    async def find(self, token: SignedToken) -> Sequence[VerificationKey]:
        self.asked += 1
        return await super().find(token)


class TestMemory:
    async def test_a_good_token_is_checked_once(self) -> None:
        keys = CountingKeys(public())
        bearer = tokens(keys=keys)
        assert await accepted(GOOD, bearer) is await accepted(GOOD, bearer)
        assert keys.asked == 1

    async def test_a_remembered_token_still_ends(self) -> None:
        clock = Clock()
        bearer = tokens(clock)
        token = sign(claims(exp=NOW + 10))
        await accepted(token, bearer)
        clock.now = NOW + 69
        await accepted(token, bearer)
        clock.now = NOW + 70
        assert "expired" in await refusal(token, bearer)

    async def test_a_token_is_checked_again_after_four_minutes(self) -> None:
        clock, keys = Clock(), CountingKeys(public())
        bearer = tokens(clock, keys=keys)
        for now, requests in ((NOW, 1), (NOW + 239, 1), (NOW + 240, 2)):
            clock.now = now
            await accepted(GOOD, bearer)
            assert keys.asked == requests

    async def test_a_token_is_recalled_from_the_header_until_it_has_to_be_checked_again(self) -> None:
        clock = Clock()
        bearer = tokens(clock)
        header = f"Bearer {GOOD}".encode()
        assert bearer.recall(digest_of(header)) is None
        principal = await accepted(GOOD, bearer)
        assert bearer.recall(digest_of(header)) is principal
        assert await bearer({"authorization": f"bearer  {GOOD} "}) is principal
        for other in (b"", GOOD.encode(), header + b"x", header[:-1], header.lower(), header.replace(b" ", b"  ")):
            assert bearer.recall(digest_of(other)) is None
        clock.now = NOW + 240
        assert bearer.recall(digest_of(header)) is None

    async def test_a_token_that_expires_while_it_is_cached_is_not_recalled(self) -> None:
        clock = Clock()
        bearer = tokens(clock)
        token = sign(claims(exp=NOW + 10))
        digest = digest_of(f"Bearer {token}".encode())
        principal = await accepted(token, bearer)
        clock.now = NOW + 9
        assert bearer.recall(digest) is principal
        clock.now = NOW + 10
        assert bearer.recall(digest) is None

    async def test_a_refused_token_is_not_recalled(self) -> None:
        forged = sign(claims(), signer=key("RSA", "second"))
        bearer = tokens()
        await refusal(forged, bearer)
        assert bearer.recall(digest_of(f"Bearer {forged}".encode())) is None

    async def test_a_refused_token_is_not_remembered_as_good(self) -> None:
        forged = sign(claims(), signer=key("RSA", "second"))
        bearer = tokens()
        assert await refusal(forged, bearer) == await refusal(forged, bearer)

    async def test_only_so_many_tokens_are_remembered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("funcmcp._auth.tokens.presented._CACHE_SIZE", 2)
        keys = CountingKeys(public("P-256"))
        bearer = tokens(keys=keys, algorithms=["ES256"])
        first, second, third = (
            sign(claims(jti=name), signer=key("P-256"), algorithm="ES256") for name in ("1", "2", "3")
        )
        for token, requests in ((first, 1), (second, 2), (third, 3), (third, 3), (second, 3), (first, 4)):
            await accepted(token, bearer)
            assert keys.asked == requests

    async def test_the_tokens_themselves_are_not_kept(self) -> None:
        bearer = tokens()
        await accepted(GOOD, bearer)
        assert GOOD not in repr(vars(bearer))


class BrokenKeys(StaticKeys):
    """Keys whose library fails in a way that nobody thought of."""

    error: type[Exception] = RuntimeError

    async def find(self, token: SignedToken) -> Sequence[VerificationKey]:
        raise self.error("secret detail")


@pytest.mark.parametrize(
    "error", [RuntimeError, RecursionError, OverflowError, MemoryError, ZeroDivisionError, KeyError]
)
async def test_a_fault_while_checking_is_a_refusal_and_one_line_in_the_log(
    error: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    keys = BrokenKeys(public())
    keys.error = error
    bearer = tokens(keys=keys)
    for _ in range(3):  # which any client can cause
        assert await refusal(GOOD, bearer) == "The token can't be verified."
    assert caplog.messages == [f"event=token_check_failed exception={error.__name__}"]


async def test_a_token_of_16_kib_is_read_and_a_longer_one_is_not() -> None:
    fitting = sign(claims(padding="x" * 11_000))
    assert len(fitting) < 16 * 1024
    await accepted(fitting)
    assert "too long" in await refusal(sign(claims(padding="x" * 12_000)))


@settings(deadline=None)
@given(st.text() | st.text(alphabet="ey0.-_=AQw", max_size=60))
async def test_no_text_is_a_token_or_breaks_anything(token: str) -> None:
    assert not isinstance(await tokens()({"authorization": f"Bearer {token}"}), Principal)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=5), values, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["iss", "aud", "sub", "exp", "nbf", "iat", "scope", "scp", "roles", "client_id", "name"])


@settings(deadline=None)
@given(st.dictionaries(NAMES, JSON, max_size=4))
async def test_signed_claims_of_any_kind_are_answered_by_a_principal_or_a_challenge(changes: dict[str, Any]) -> None:
    token = sign({**claims(), **changes}, signer=key("P-256"), algorithm="ES256")
    identity = await tokens(keys=StaticKeys(public("P-256")), algorithms=["ES256"])(bearing(token))
    assert identity is not None
    assert identity != Challenge("invalid_token", "The token can't be verified.")


class TestConfiguration:
    @pytest.mark.parametrize("audience", ["", [], [""], ["a", ""]])
    def test_a_server_that_does_not_know_its_audience_does_not_start(self, audience: Any) -> None:
        with pytest.raises(ValueError, match="audience"):
            BearerTokens(ISSUER, audience, keys=StaticKeys(public()))

    def test_there_is_no_audience_by_default(self) -> None:
        with pytest.raises(TypeError, match="audience"):
            BearerTokens(ISSUER, keys=StaticKeys(public()))  # type: ignore[call-arg]

    @pytest.mark.parametrize("issuer", ["", [], [""]])
    def test_an_issuer_is_needed(self, issuer: Any) -> None:
        with pytest.raises(ValueError, match="issuer"):
            BearerTokens(issuer, AUDIENCE, keys=StaticKeys(public()))

    @pytest.mark.parametrize(
        ("rules", "message"),
        [
            ({"algorithms": []}, "one or more of"),
            ({"algorithms": ["none"]}, "one or more of"),
            ({"algorithms": ["RS256", "XS256"]}, "one or more of"),
            ({"algorithms": ["RS256", "HS256"]}, "can't have both"),
            ({"leeway": 301}, "between 0 and 300"),
            ({"leeway": -1}, "between 0 and 300"),
            ({"leeway": float("nan")}, "between 0 and 300"),
        ],
    )
    def test_rules_that_would_be_no_protection_are_refused(self, rules: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            TokenRules(**rules)

    @pytest.mark.parametrize(("name", "value"), [("algorithms", "RS256"), ("types", "JWT"), ("any_of", ["scp"])])
    def test_one_string_is_no_list(self, name: str, value: Any) -> None:
        with pytest.raises(TypeError, match=f"TokenRules.{name} is a list"):
            TokenRules(**{name: value})

    @pytest.mark.parametrize(("kind", "algorithm"), [("oct", "RS256"), ("RSA", "HS256")])
    def test_secrets_and_public_keys_have_algorithms_of_their_own(self, kind: str, algorithm: str) -> None:
        with pytest.raises(ValueError, match="require secrets"):
            tokens(keys=StaticKeys(public(kind)), algorithms=[algorithm])


@pytest.mark.parametrize(
    ("rules", "token", "scopes", "subject"),
    [
        # Auth0, a user of an API with role-based access control
        (
            {"scope_claims": ["scope", "permissions"]},
            {"azp": "app", "client_id": None, "scope": "openid", "permissions": ["orders.read"]},
            {"openid", "orders.read"},
            "alice",
        ),
        # Cognito, a program
        (
            {"scope_prefix": "https://api/", "clients_without_audience": ["job"], "types": ["JWT"]},
            {"sub": "job", "aud": None, "client_id": "job", "token_use": "access", "scope": "https://api/orders.read"},
            {"orders.read"},
            "job",
        ),
        # Entra ID, a program with app roles
        (
            {"scope_claims": ["scp", "roles"]},
            {"roles": ["orders.read"], "client_id": None, "azp": "job"},
            {"orders.read"},
            "alice",
        ),
        # Keycloak, realm roles
        (
            {"scope_claims": ["realm_access.roles"]},
            {"realm_access": {"roles": ["orders.read"]}},
            {"orders.read"},
            "alice",
        ),
        # a program without a subject
        ({"subject_claims": ("sub", "client_id")}, {"sub": None, "client_id": "job", "scope": "a"}, {"a"}, "job"),
    ],
)
async def test_tokens_of_particular_issuers_are_read_with_rules(
    rules: dict[str, Any], token: dict[str, Any], scopes: set[str], subject: str
) -> None:
    header = {"typ": None} if "types" in rules else {}
    principal = await accepted(sign(claims(**token), header=header), tokens(**rules))
    assert (set(principal.scopes), principal.subject) == (scopes, subject)


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ({"aud": None, "client_id": "evil"}, "another client"),
        ({"aud": None, "client_id": None, "azp": "job"}, "another client"),
        ({"aud": "https://other.example.com", "client_id": "job"}, "another audience"),
        ({"aud": None, "client_id": "job", "token_use": "id"}, "ID token"),
        ({"aud": None, "client_id": "job", "nonce": "n"}, "ID token"),
    ],
)
async def test_a_token_without_an_audience_is_of_a_client_that_is_named(token: dict[str, Any], reason: str) -> None:
    assert reason in await refusal(sign(claims(**token)), tokens(clients_without_audience=["job"]))
