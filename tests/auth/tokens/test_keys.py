"""Vectors for signatures, our own and those of the Wycheproof project, and what makes a key unfit.

Wycheproof's are third-party data that is on no package registry. They are used beside our own if they are in the folder
that the environment variable ``WYCHEPROOF`` names, or else in ``../shared/data/wycheproof`` beside the repository.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwe
from joserfc.jwk import OctKey

from funcmcp._auth.tokens.compact import TokenError, read
from funcmcp._auth.tokens.keys import StaticKeys, UnfitKeyError, read_key
from tests.auth import vectors
from tests.auth.making_tokens import claims, key, pem, public, sign, text
from tests.patience import PATIENCE

pytestmark = pytest.mark.lowest("cryptography and joserfc check the signatures.")

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data" / "wycheproof"
FOLDER = Path(os.environ.get("WYCHEPROOF", _BESIDE))
FILES = ("json_web_signature_test", "json_web_key_test", "json_web_crypto_test")
SIGNATURES = "json_web_signature_test"
THE_KEY_IS_FOR_ANOTHER_ALGORITHM = {(SIGNATURES, number) for number in (346, 347, 350, 351)}
"""Marked valid, but the key says PS256 for a token with PS384, or ES521, which is no name: typing errors."""

CHARACTERS_OUTSIDE_BASE64 = {(SIGNATURES, number) for number in (372, 373)}
"""Marked valid with a question mark inside, which RFC 7515 section 2 forbids and its sister vectors are invalid for."""

VALID_BYTES = {(SIGNATURES, number) for number in (367, 370)}
"""Marked invalid for their padding, which has got lost: they are the bytes of the valid vector 357."""


def _groups() -> dict[str, list[dict[str, Any]]]:
    """Return the test groups by the name of their file."""
    groups = {vectors.FILE: vectors.groups()}
    for name in FILES:
        path = FOLDER / f"{name}.json"
        if path.is_file():
            groups[name] = json.loads(path.read_text())["testGroups"]
    return groups


GROUPS = _groups()
VECTORS: list[Any] = [
    pytest.param(group, test, id=f"{name}-{test['tcId']}-{test['result']}")
    for name, groups in GROUPS.items()
    for group in groups
    for test in group["tests"]
    if "jws" in test
]


def number_of(request: pytest.FixtureRequest) -> tuple[str, int]:
    file, number, _ = request.node.callspec.id.split("-")
    return file, int(number)


async def is_accepted(key: dict[str, Any], token: object) -> bool:
    if not isinstance(token, str):
        return False
    try:
        signed = read(token)
        return any(candidate.verifies(signed) for candidate in await StaticKeys(key).find(signed))
    except (TokenError, UnfitKeyError):
        return False


@pytest.mark.parametrize(("group", "test"), VECTORS)
async def test_a_vector_is_accepted_exactly_where_it_is_valid(
    group: dict[str, Any], test: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    number = number_of(request)
    key = group.get("public") or group["private"]
    accepted = await is_accepted(key, test["jws"])
    if number in THE_KEY_IS_FOR_ANOTHER_ALGORITHM:
        assert not accepted
        assert await is_accepted({name: value for name, value in key.items() if name != "alg"}, test["jws"])
    elif number in CHARACTERS_OUTSIDE_BASE64:
        assert "?" in test["jws"]
        assert not accepted
    elif number in VALID_BYTES:
        assert test["jws"] == next(other["jws"] for other in group["tests"] if other["tcId"] == 357)
        assert accepted
    else:
        assert accepted == (test["result"] == "valid")


def test_every_vector_of_a_signature_is_used() -> None:
    counts = Counter((case.values[0] in GROUPS[vectors.FILE], case.values[1]["result"]) for case in VECTORS)
    assert (counts[True, "valid"], counts[True, "invalid"]) == (52, 471)
    assert {path.stem for path in FOLDER.glob("*.json")} <= set(FILES)
    expected = (55, 421) if FOLDER.is_dir() else (0, 0)
    assert (counts[False, "valid"], counts[False, "invalid"]) == expected


def test_no_encrypted_token_is_taken_for_a_signed_one() -> None:
    plaintext = sign(claims()).encode()
    direct = OctKey.import_key(bytes(32))
    encrypted = [
        jwe.encrypt_compact({"alg": "dir", "enc": "A256GCM"}, plaintext, direct),
        jwe.encrypt_compact({"alg": "A256KW", "enc": "A128CBC-HS256"}, plaintext, direct),
        jwe.encrypt_compact({"alg": "ECDH-ES+A128KW", "enc": "A128GCM"}, plaintext, key("P-256")),
        jwe.encrypt_compact({"alg": "RSA-OAEP", "enc": "A256GCM"}, plaintext, key()),
    ]
    for group in GROUPS.get("json_web_crypto_test", []):
        encrypted += [test["jwe"] for test in group["tests"] if isinstance(test.get("jwe"), str)]
    for token in encrypted:
        with pytest.raises(TokenError):
            read(token)


SMALL = {"kty": "RSA", "e": "AQAB", "n": text(b"\xff" * 128)}


@pytest.mark.parametrize(
    "jwk",
    [
        {},
        {"kty": "RSA"},
        {"kty": ["RSA"]},
        {"kty": "DSA"},
        SMALL,
        {**SMALL, "n": text(b"\xff" * 1025)},
        {**public(), "n": 1},
        {**public(), "n": "!"},
        {**public(), "e": "AQ"},
        {**public(), "e": text(b"\x01\x00")},
        {**public(), "e": text(b"\x01" * 5)},
        {**public(), "use": "enc"},
        {**public(), "key_ops": ["encrypt"]},
        {**public(), "key_ops": None},
        {**public(), "alg": "ES256"},
        {**public(), "alg": "RSA-OAEP"},
        {**public(), "alg": ["RS256"]},
        {**public(), "kid": 1},
        {**public("P-256"), "crv": "P-384"},
        {**public("P-256"), "crv": "secp256k1"},
        {**public("P-256"), "x": text(b"\x01" * 32)},
        {**public("P-256"), "x": None},
        {**public("Ed25519"), "crv": "X25519"},
        {**public("Ed25519"), "x": "AA"},
        {"kty": "oct", "k": ""},
        {"kty": "oct", "k": text(b"x" * 31)},
        {"kty": "oct", "k": text(b"x" * 32), "alg": "HS384"},
        {"kty": "oct", "k": text(pem())},
        key().as_dict(private=True),
        key("P-256").as_dict(private=True),
        key("Ed25519").as_dict(private=True),
    ],
)
def test_a_key_that_is_not_sound_or_not_for_signatures_is_refused(jwk: dict[str, Any]) -> None:
    with pytest.raises(UnfitKeyError):
        StaticKeys(jwk)


@pytest.mark.parametrize(
    "keys",
    [
        (),
        ({"keys": []},),
        (public(), public("RSA", "second", kid="first")),
        (public(), public("oct", "second")),
        ("-----BEGIN PUBLIC KEY-----",),
        ("",),
    ],
)
def test_keys_that_can_not_be_told_apart_or_do_not_go_together_are_refused(keys: Any) -> None:
    with pytest.raises(UnfitKeyError):
        StaticKeys(*keys)


async def test_a_key_is_only_for_the_algorithm_that_it_names() -> None:
    keys = StaticKeys(public(alg="PS256"))
    assert await keys.find(read(sign(claims(), algorithm="RS256"))) == []
    assert len(await keys.find(read(sign(claims(), algorithm="PS256")))) == 1


def test_keys_of_one_name_for_different_algorithms_can_be_told_apart() -> None:
    StaticKeys(public(alg="RS256"), public(alg="PS256"))
    StaticKeys(public(), public("P-256"))


async def test_keys_can_be_given_as_a_set_and_as_text() -> None:
    for keys in (StaticKeys({"keys": [public(), public("P-256", "second")]}), StaticKeys(pem().decode())):
        token = read(sign(claims()))
        assert [candidate.verifies(token) for candidate in await keys.find(token)] == [True]


def test_the_repr_of_a_key_does_not_show_it() -> None:
    jwk = public("oct")
    assert jwk["k"] not in repr(read_key(jwk))


def test_without_the_extra_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['joserfc'] = None; import funcmcp._auth.tokens.bearer"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert run.stderr.splitlines()[-1].endswith('Checking tokens needs: pip install "funcmcp[auth]"')


def test_api_keys_load_no_cryptography_and_given_keys_no_http_client() -> None:
    code = (
        "import sys, funcmcp._auth.api_key, funcmcp._auth.easy_auth, funcmcp._auth.protected_resource\n"
        "assert not {'joserfc', 'cryptography', 'httpx2', 'asyncio'} & set(sys.modules)\n"
        "import funcmcp._auth.entra_id\n"
        "assert 'joserfc' in sys.modules and 'httpx2' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], timeout=PATIENCE, check=True)
