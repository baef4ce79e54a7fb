"""API keys."""

from __future__ import annotations

import gc
import hashlib
import hmac

import pytest

from funcmcp._auth import api_key
from funcmcp._auth.api_key import APIKeys
from funcmcp._auth.authenticator import Challenge, Fit
from funcmcp._auth.principal import Principal

ALICE, BOB, OLD = "alice-0123456789abcdef", "bob-0123456789abcdef", "bob-fedcba9876543210"


async def test_each_key_is_its_callers() -> None:
    keys = APIKeys({"alice": ALICE, "bob": [BOB, OLD]}, scopes={"bob": ["orders.read"]}, roles={"alice": ["admin"]})
    alice = Principal("alice", "api-key", name="alice", roles=frozenset({"admin"}))
    bob = Principal("bob", "api-key", name="bob", scopes=frozenset({"orders.read"}))
    assert await keys({"x-api-key": ALICE}) == alice
    assert await keys({"x-api-key": BOB}) == bob
    assert await keys({"x-api-key": OLD}) == bob


async def test_without_the_header_there_is_nobody() -> None:
    assert await APIKeys({"alice": ALICE})({"authorization": f"Bearer {ALICE}"}) is None


@pytest.mark.parametrize("key", ["", " ", ALICE[:-1], ALICE + "0", ALICE.upper(), f" {ALICE}", "é", "\ud800", "?"])
async def test_an_unknown_key_is_refused(key: str) -> None:
    identity = await APIKeys({"alice": ALICE})({"x-api-key": key})
    assert identity == Challenge("invalid_token", "The API key is not known.")


async def test_the_header_can_have_another_name() -> None:
    keys = APIKeys({"alice": ALICE}, header="X-Functions-Key")
    assert isinstance(await keys({"x-functions-key": ALICE}), Principal)
    assert await keys({"x-api-key": ALICE}) is None


async def test_in_authorization_a_key_comes_as_a_bearer_token() -> None:
    keys = APIKeys({"alice": ALICE}, header="Authorization")
    assert isinstance(await keys({"authorization": f"bearer {ALICE}"}), Principal)
    assert isinstance(await keys({"authorization": "Bearer other"}), Challenge)
    assert await keys({"authorization": ALICE}) is None
    assert await keys({"authorization": "Basic abc"}) is None


async def test_a_configuration_can_hold_the_digest_instead_of_the_key() -> None:
    digest = "sha256:" + hashlib.sha256(ALICE.encode()).hexdigest()
    keys = APIKeys({"alice": digest})
    assert isinstance(await keys({"x-api-key": ALICE}), Principal)
    assert isinstance(await keys({"x-api-key": digest}), Challenge)


async def test_every_key_is_compared_whichever_one_came(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def compare(first: bytes, second: bytes) -> bool:
        compared.append(first)
        return hmac.compare_digest(first, second)

    keys = APIKeys({"alice": ALICE, "bob": [BOB, OLD]})
    for key in (ALICE, OLD, "neither"):
        compared.clear()
        with monkeypatch.context() as patch:
            patch.setattr(api_key, "hmac", type("hmac", (), {"compare_digest": staticmethod(compare)}))
            await keys({"x-api-key": key})
        assert compared == [hashlib.sha256(key.encode()).digest() for key in (ALICE, BOB, OLD)]


def test_the_keys_themselves_are_not_kept() -> None:
    secret = "".join(["a-key-", "made-at-", "run-time"])
    keys = APIKeys({"alice": secret})
    seen: set[int] = set()
    left: list[object] = [keys.__dict__]
    while left:
        thing = left.pop()
        if id(thing) not in seen and not isinstance(thing, type):
            seen.add(id(thing))
            assert thing != secret
            left.extend(gc.get_referents(thing) if not callable(thing) else [])


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "at least one key"),
        ({"alice": []}, "at least one key"),
        ({"alice": "short"}, "'alice' must have at least 16"),
        ({"alice": "with a space in it"}, "visible ASCII"),
        ({"alice": "with-an-é-0123456789"}, "visible ASCII"),
        ({"alice": "with-a-newline-0123\n"}, "visible ASCII"),
        ({"alice": "sha256:abc"}, "64 hex digits"),
        ({"alice": ALICE, "bob": ALICE}, "another caller"),
        ({"": ALICE}, "needs a subject"),
    ],
)
def test_a_configuration_that_can_only_be_a_mistake_is_refused(keys: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        APIKeys(keys)
    assert not any(isinstance(key, str) and key and key in str(caught.value) for key in keys.values())


def test_scopes_of_somebody_without_a_key_are_refused() -> None:
    with pytest.raises(ValueError, match="'mallory'"):
        APIKeys({"alice": ALICE}, scopes={"mallory": ["all"]})


def test_scopes_that_are_one_string_are_refused() -> None:
    with pytest.raises(TypeError, match="not one string"):
        APIKeys({"alice": ALICE}, scopes={"alice": "orders.read"})


@pytest.mark.parametrize("header", ["", "x api key", "x-api-key:", "x\r\ny"])
def test_what_is_no_name_of_a_header_is_refused(header: str) -> None:
    with pytest.raises(ValueError, match="not a valid header name"):
        APIKeys({"alice": ALICE}, header=header)


@pytest.mark.parametrize(
    ("header", "value", "fit"),
    [
        ("x-api-key", "a-key-that-nobody-has", Fit.KIND),
        ("x-api-key", "", Fit.NONE),
        ("x-api-key", "with space", Fit.NONE),
        ("authorization", "Bearer a-key-that-nobody-has", Fit.KIND),
        ("authorization", "Bearer eyJhbGciOiJFUzI1NiJ9.e30.AAAA", Fit.NONE),
        ("authorization", "Basic a-key-that-nobody-has", Fit.NONE),
        ("cookie", "a-key-that-nobody-has", Fit.NONE),
    ],
)
def test_a_key_fits_if_it_looks_like_one(header: str, value: str, fit: Fit) -> None:
    keys = APIKeys({"ada": "a-key-of-ada-with-many-characters"}, header=header.replace("cookie", "x-api-key"))
    assert keys.fit({header: value}) == fit
