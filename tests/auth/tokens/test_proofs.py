"""Proofs of possession (DPoP): what is accepted, and that everything else is refused without a trace of it."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from joserfc.jwk import ECKey

from funcmcp._auth.tokens.proofs import ProofError, Proofs, is_key_of
from funcmcp._state.replays import FixedAccount, Nonces, Replays
from funcmcp.state import KeyRing
from tests.auth.making_proofs import bound, jwk_of, proof
from tests.auth.making_tokens import AUDIENCE, NOW, Clock, key, text

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.lowest("joserfc reads the keys of proofs, and checks the signatures.")

TOKEN = bound()
KEYS = KeyRing([b"the key of the tests" * 2])


def proofs(clock: Clock | None = None, *, has_nonces: bool = False) -> Proofs:
    clock = clock or Clock()
    return Proofs(
        Replays(FixedAccount(1_000_000, 1_000_000), clock), clock, Nonces(KEYS, clock) if has_nonces else None
    )


def refusal(value: str, **changes: Any) -> str:
    """Return why a proof is refused."""
    expected: dict[str, Any] = {"method": "POST", "url": AUDIENCE, "token": TOKEN}
    with pytest.raises(ProofError) as refused:
        proofs().read(value, **expected | changes)
    assert refused.value.error == "invalid_dpop_proof"
    return str(refused.value)


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        ("P-256", "ES256"),
        ("P-384", "ES384"),
        ("P-521", "ES512"),
        ("Ed25519", "EdDSA"),
        ("Ed25519", "Ed25519"),
        *(("RSA", f"{name}{bits}") for name in ("RS", "PS") for bits in (256, 384, 512)),
    ],
)
async def test_a_good_proof_names_its_key_and_is_good_once(kind: str, algorithm: str) -> None:
    checks, signer = proofs(), key(kind)
    read = checks.read(proof(TOKEN, signer=signer, algorithm=algorithm), "POST", AUDIENCE, TOKEN)
    assert is_key_of(signer.thumbprint(), read)
    assert not is_key_of(key(kind, "second").thumbprint(), read)
    assert read.until == NOW + 300
    await checks.use(read, "alice")
    with pytest.raises(ProofError, match="used before"):
        await checks.use(read, "alice")


def with_part(value: str, index: int, change: Callable[[dict[str, Any]], dict[str, Any]]) -> str:
    """Return a proof with another header or payload, and the signature of the first one."""
    parts = value.split(".")
    decoded = json.loads(base64.urlsafe_b64decode(parts[index] + "=="))
    parts[index] = text(json.dumps(change(decoded)).encode())
    return ".".join(parts)


PUBLIC = jwk_of(key("P-256"))
PRIVATE = key("P-256").as_dict(private=True)
SECRET = key("oct").as_dict(private=True)
CERTIFICATE = {"x5c": ["AAAA"], "x5u": "https://evil.example.com/", "x5t": "A", "jku": "https://evil.example.com/"}
GOOD = proof(TOKEN)
SIGNED = GOOD.rpartition(".")[0]

BAD = {
    "empty": "",
    "not a token": "this-is-not-a-jwt",
    "two proofs": f"{GOOD}, {GOOD}",
    "a space": f"{GOOD} ",
    "five parts": f"{GOOD}.a.b",
    "not ASCII": GOOD.replace("e", "\u0435", 1),
    "too long": proof(TOKEN, jti="a" * 9000),
    "unsigned": f"{with_part(GOOD, 0, lambda header: header | {'alg': 'none'}).rpartition('.')[0]}.",
    "unsigned, in other letters": with_part(GOOD, 0, lambda header: header | {"alg": "nOnE"}),
    "HS256": proof(TOKEN, signer=key("oct"), algorithm="HS256", header={"jwk": SECRET}),
    "HS256 with the public key": proof(TOKEN, signer=key("oct"), algorithm="HS256", header={"jwk": PUBLIC}),
    "an algorithm of another key": with_part(GOOD, 0, lambda header: header | {"alg": "ES384"}),
    "an unknown algorithm": with_part(GOOD, 0, lambda header: header | {"alg": "ES257"}),
    "another type": proof(TOKEN, header={"typ": "jwt"}),
    "an access token's type": proof(TOKEN, header={"typ": "at+jwt"}),
    "no type": proof(TOKEN, header={"typ": None}),
    "critical extensions": proof(TOKEN, header={"crit": ["b64"], "b64": False}),
    "no key": proof(TOKEN, header={"jwk": None}),
    "a key by name": proof(TOKEN, header={"jwk": "first", "kid": "first"}),
    "keys": proof(TOKEN, header={"jwk": [PUBLIC]}),
    "a private key": proof(TOKEN, header={"jwk": PRIVATE}),
    "one private member": proof(TOKEN, header={"jwk": PUBLIC | {"d": None}}),
    "a private RSA member": proof(TOKEN, header={"jwk": PUBLIC | {"dp": "AA"}}),
    "a secret": proof(TOKEN, header={"jwk": SECRET}),
    "a secret's member": proof(TOKEN, header={"jwk": PUBLIC | {"k": "AA"}}),
    "another key": proof(TOKEN, header={"jwk": jwk_of(key("P-256", "second"))}),
    "a key in certificates": proof(TOKEN, header={"jwk": None, **CERTIFICATE}),
    "certificates in the key": proof(TOKEN, header={"jwk": {"kty": "EC", **CERTIFICATE}}),
    "a key for encryption": proof(TOKEN, header={"jwk": PUBLIC | {"use": "enc"}}),
    "a key for another algorithm": proof(TOKEN, header={"jwk": PUBLIC | {"alg": "ES384"}}),
    "a key for another padding": proof(
        TOKEN, signer=key("RSA"), algorithm="RS256", header={"jwk": jwk_of(key("RSA")) | {"alg": "PS256"}}
    ),
    "a key with lists": proof(TOKEN, header={"jwk": PUBLIC | {"crv": ["P-256"]}}),
    "a key with another type of type": proof(TOKEN, header={"jwk": PUBLIC | {"kty": {"a": 1}}}),
    "a point that is not on the curve": proof(TOKEN, header={"jwk": PUBLIC | {"y": PUBLIC["x"]}}),
    "a curve that signs nothing": proof(TOKEN, header={"jwk": {"kty": "OKP", "crv": "X25519", "x": "A" * 43}}),
    "a short RSA key": proof(TOKEN, header={"alg": "RS256", "jwk": {"kty": "RSA", "n": "AQAB", "e": "AQAB"}}),
    "a large exponent": proof(
        TOKEN, header={"alg": "RS256", "jwk": {**jwk_of(key("RSA")), "e": text(b"\x01" + b"\x00" * 8)}}
    ),
    "another signature": f"{SIGNED}.{text(b'a' * 64)}",
    "an empty signature": f"{SIGNED}.",
    "a signature of zeros": f"{SIGNED}.{text(bytes(64))}",
    "a signature in DER": f"{SIGNED}.{text(bytes([0x30, 0x44]) + b'a' * 68)}",
    "another payload": with_part(GOOD, 1, lambda payload: payload | {"htm": "GET"}),
    "no object": f"{GOOD.partition('.')[0]}.{text(b'[]')}.{GOOD.rpartition('.')[2]}",
    "another method": proof(TOKEN, htm="GET"),
    "a method in other letters": proof(TOKEN, htm="post"),
    "no method": proof(TOKEN, htm=None),
    "methods": proof(TOKEN, htm=["POST"]),
    "no URL": proof(TOKEN, htu=None),
    "URLs": proof(TOKEN, htu=[AUDIENCE]),
    "another host": proof(TOKEN, htu="https://evil.example.com/mcp"),
    "a host that ends alike": proof(TOKEN, htu="https://xorders.example.com/mcp"),
    "a host that begins alike": proof(TOKEN, htu="https://orders.example.com.evil.example/mcp"),
    "a user name": proof(TOKEN, htu="https://orders.example.com@evil.example/mcp"),
    "a user name before the host": proof(TOKEN, htu="https://evil@orders.example.com/mcp"),
    "http": proof(TOKEN, htu="http://orders.example.com/mcp"),
    "another port": proof(TOKEN, htu="https://orders.example.com:444/mcp"),
    "port 80": proof(TOKEN, htu="https://orders.example.com:80/mcp"),
    "no port": proof(TOKEN, htu="https://orders.example.com:99999999/mcp"),
    "a slash at the end": proof(TOKEN, htu=f"{AUDIENCE}/"),
    "a path in other letters": proof(TOKEN, htu="https://orders.example.com/MCP"),
    "a path below": proof(TOKEN, htu=f"{AUDIENCE}/tools"),
    "a path that is encoded twice": proof(TOKEN, htu="https://orders.example.com/%256dcp"),
    "an encoded slash": proof(TOKEN, htu="https://orders.example.com%2Fmcp"),
    "a backslash": proof(TOKEN, htu="https://orders.example.com\\mcp"),
    "a line feed": proof(TOKEN, htu=f"{AUDIENCE}\n"),
    "a tab": proof(TOKEN, htu="https://orders.exam\tple.com/mcp"),
    "a letter that looks alike": proof(TOKEN, htu="https://orders.ex\u0430mple.com/mcp"),
    "a fullwidth letter": proof(TOKEN, htu="https://orders.example.com/\uff4dcp"),
    "no scheme": proof(TOKEN, htu="orders.example.com/mcp"),
    "brackets": proof(TOKEN, htu="https://[orders.example.com/mcp"),
    "a very long URL": proof(TOKEN, htu=f"{AUDIENCE}?{'a' * 3000}"),
    "no id": proof(TOKEN, jti=None),
    "an empty id": proof(TOKEN, jti=""),
    "a number as id": proof(TOKEN, jti=1),
    "a long id": proof(TOKEN, jti="a" * 600),
    "no time": proof(TOKEN, iat=None),
    "a text as time": proof(TOKEN, iat=str(NOW)),
    "true as time": proof(TOKEN, iat=True),
    "a large time": proof(TOKEN, iat=2**70),
    "an old one": proof(TOKEN, iat=int(NOW) - 301),
    "one of the future": proof(TOKEN, iat=int(NOW) + 301),
    "no token": proof(),
    "another token": proof(bound(sub="bob")),
    "the hash in other letters": proof(TOKEN, ath="A" * 43),
    "a hash that is not ASCII": proof(TOKEN, ath="\u0430" * 43),
    "a lone surrogate": proof(TOKEN, ath="\ud800"),
    "hashes": proof(TOKEN, ath=[]),
}


def test_a_bad_proof_is_refused_for_its_own_reason() -> None:
    reasons = {name: refusal(value) for name, value in BAD.items()}
    for name, reason in reasons.items():
        assert reason.isascii(), name
        assert "evil" not in reason, name
    kinds = {
        "too long": "8192 characters",
        "HS256": "algorithm",
        "another type": "typ",
        "a private key": "private key",
        "another key": "signature",
        "another payload": "signature",
        "a key for another padding": "not for its algorithm",
        "a short RSA key": "not usable",
        "another method": "htm",
        "another port": "htu",
        "a long id": "jti",
        "an old one": "301 seconds behind the clock of the server. At most 300 are accepted. The proof is too old",
        "one of the future": "301 seconds ahead of the clock",
        "another token": "ath",
    }
    assert {name: word for name, word in kinds.items() if word not in reasons[name]} == {}


@pytest.mark.parametrize(
    ("claimed", "url"),
    [
        ("HTTPS://ORDERS.example.com:443/mcp", AUDIENCE),
        ("https://orders.example.com/%6Dcp", AUDIENCE),
        ("https://orders.example.com/a/../mcp?x=1#y", AUDIENCE),
        ("https://orders.example.com", "https://orders.example.com/"),
        ("https://orders.example.com/a%2fb", "https://orders.example.com/a%2Fb"),
        ("http://[::1]:80/mcp", "http://[::1]/mcp"),
        ("http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000/mcp"),
    ],
)
def test_urls_that_are_equal_by_rfc_3986_are_equal(claimed: str, url: str) -> None:
    assert proofs().read(proof(TOKEN, htu=claimed), "POST", url, TOKEN).id == "first"


def test_the_time_may_differ_by_five_minutes_and_has_no_bearing_on_a_repeated_request() -> None:
    clock = Clock()
    for seconds in (-300, -299.5, 0, 300):
        read = proofs(clock).read(proof(TOKEN, iat=NOW + seconds), "POST", AUDIENCE, TOKEN)
        assert read.until == NOW + seconds + 300
    clock.now += 900
    value = proof(TOKEN)
    with pytest.raises(ProofError, match="too old"):
        proofs(clock).read(value, "POST", AUDIENCE, TOKEN)
    assert proofs(clock).read(value, "POST", AUDIENCE, TOKEN, is_repeated=True).jkt == key("P-256").thumbprint()


def test_with_nonces_a_proof_is_as_old_as_its_nonce() -> None:
    clock = Clock()
    checks = proofs(clock, has_nonces=True)
    with pytest.raises(ProofError) as refused:
        checks.read(proof(TOKEN), "POST", AUDIENCE, TOKEN)
    nonce = refused.value.nonce
    assert refused.value.error == "use_dpop_nonce"
    assert nonce is not None
    clock.now += 200
    for issued, until in ((NOW + 250, NOW + 300), (NOW - 50, NOW + 250)):
        assert checks.read(proof(TOKEN, nonce=nonce, iat=issued), "POST", AUDIENCE, TOKEN).until == until
    with pytest.raises(ProofError, match="too old"):
        checks.read(proof(TOKEN, nonce=nonce, iat=5), "POST", AUDIENCE, TOKEN)
    sealed_for_another_purpose = KEYS.seal("session", str(int(clock.now)).encode())
    of_another_key = Nonces(KeyRing([b"another key" * 4]), clock).new()
    changed = nonce[:-1] + ("A" if nonce[-1] != "A" else "E")
    for bad in ("", "x", 5, changed, "1." * 500, "\u0430", sealed_for_another_purpose, of_another_key):
        with pytest.raises(ProofError) as refused:
            checks.read(proof(TOKEN, nonce=bad), "POST", AUDIENCE, TOKEN)
        assert refused.value.error == "use_dpop_nonce", bad
    with pytest.raises(ProofError) as refused:  # what is wrong with the proof itself comes first
        checks.read(proof(TOKEN, nonce=nonce, htm="GET"), "POST", AUDIENCE, TOKEN)
    assert refused.value.error == "invalid_dpop_proof"
    clock.now += 100
    value = proof(TOKEN, nonce=nonce, iat=clock.now)
    with pytest.raises(ProofError, match="nonce"):
        checks.read(value, "POST", AUDIENCE, TOKEN)
    clock.now = NOW - 61  # the clock of the instance that has issued it is ahead
    with pytest.raises(ProofError, match="nonce"):
        checks.read(proof(TOKEN, nonce=nonce), "POST", AUDIENCE, TOKEN)


def test_a_key_that_is_written_with_a_zero_before_it_is_another_key() -> None:
    signer = ECKey.generate_key("P-256")
    padded = jwk_of(signer) | {"x": text(b"\x00" + base64.urlsafe_b64decode(jwk_of(signer)["x"] + "="))}
    read = proofs().read(proof(TOKEN, signer=signer, header={"jwk": padded}), "POST", AUDIENCE, TOKEN)
    assert not is_key_of(signer.thumbprint(), read)
