"""Text that only this server can have made."""

from __future__ import annotations

import base64
import string
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funcmcp._state.seal import KeyRing

KEYS = KeyRing([b"current" * 5])
TOKEN = KEYS.seal("state", b'{"answered":{}}')
ALPHABET = string.ascii_letters + string.digits + "-_"


@settings(deadline=None)
@given(st.binary(), st.text(max_size=20))
def test_what_is_sealed_opens_to_the_same_payload(payload: bytes, purpose: str) -> None:
    assert KEYS.open(purpose, KEYS.seal(purpose, payload)) == payload


@settings(deadline=None)
@given(st.binary(max_size=64))
def test_a_token_is_fit_for_a_header_and_a_url(payload: bytes) -> None:
    assert set(KEYS.seal("state", payload)) <= set(ALPHABET + ".")


@pytest.mark.parametrize("place", range(len(TOKEN)))
def test_a_token_with_any_one_character_changed_is_refused(place: int) -> None:
    for character in {*ALPHABET, ".", "=", "+", "/", " ", "\n", "é", "\ud800"} - {TOKEN[place]}:
        assert KEYS.open("state", TOKEN[:place] + character + TOKEN[place + 1 :]) is None


@settings(deadline=None)
@given(st.binary(max_size=40), st.data())
def test_a_changed_token_is_refused_whatever_it_holds(payload: bytes, data: st.DataObject) -> None:
    token = KEYS.seal("state", payload)
    place = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters().filter(lambda character: character != token[place]))
    assert KEYS.open("state", token[:place] + other + token[place + 1 :]) is None


@pytest.mark.parametrize("place", range(len(TOKEN) + 1))
def test_a_token_with_a_character_more_or_less_is_refused(place: int) -> None:
    for character in "A.= \t\n":
        assert KEYS.open("state", TOKEN[:place] + character + TOKEN[place:]) is None
    if place < len(TOKEN):
        assert KEYS.open("state", TOKEN[:place] + TOKEN[place + 1 :]) is None


@settings(deadline=None)
@given(st.text() | st.text(alphabet=ALPHABET + ".", max_size=80) | st.text(alphabet=st.characters(categories=["Cs"])))
def test_text_from_elsewhere_is_refused(token: str) -> None:
    assert KEYS.open("state", token) is None


@pytest.mark.parametrize("token", ["", ".", "..", "...", "1..", "1.e30.", "2" + TOKEN[1:], TOKEN.partition(".")[2]])
def test_a_token_of_another_shape_is_refused(token: str) -> None:
    assert KEYS.open("state", token) is None


def test_a_token_for_one_purpose_is_worthless_for_another() -> None:
    assert KEYS.open("session", TOKEN) is None


def test_a_token_of_another_key_is_refused() -> None:
    assert KeyRing([b"other" * 8]).open("state", TOKEN) is None


def test_keys_can_be_changed_without_losing_what_is_under_way() -> None:
    rotated = KeyRing([b"next" * 8, b"current" * 5])
    assert rotated.open("state", TOKEN) == b'{"answered":{}}'
    fresh = rotated.seal("state", b"new")
    assert KEYS.open("state", fresh) is None
    assert KeyRing([b"next" * 8]).open("state", fresh) == b"new"


def test_servers_that_share_keys_have_no_use_for_what_the_other_sealed() -> None:
    orders, menu = KEYS.of("orders"), KEYS.of("menu")
    token = orders.seal("state", b"a")
    assert (orders.open("state", token), menu.open("state", token), KEYS.open("state", token)) == (b"a", None, None)
    assert KeyRing([b"next" * 8, b"current" * 5]).of("orders").open("state", token) == b"a"
    assert (KEYS.of("orders").shared, KeyRing().of("orders").shared) == (True, False)


def test_two_key_rings_by_default_share_no_key() -> None:
    first, second = KeyRing(), KeyRing()
    token = first.seal("state", b"a")
    assert first.open("state", token) == b"a"
    assert second.open("state", token) is None


CONCEALED = KEYS.conceal("code", b'{"subject":"ada"}')


@settings(deadline=None)
@given(st.binary(), st.text(max_size=20))
def test_what_is_concealed_is_revealed_for_its_purpose_only(payload: bytes, purpose: str) -> None:
    token = KEYS.conceal(purpose, payload)
    assert KEYS.reveal(purpose, token) == payload
    assert KEYS.reveal(purpose + "s", token) is None


def test_a_concealed_payload_is_not_readable() -> None:
    token = KEYS.conceal("code", b"subject" * 20)
    data = base64.urlsafe_b64decode(token.partition(".")[2] + "==")
    assert b"subject" not in data
    assert KEYS.conceal("code", b"subject" * 20) != token


@settings(deadline=None)
@given(st.binary(max_size=64))
def test_a_concealed_token_is_fit_for_a_header_a_cookie_and_a_url(payload: bytes) -> None:
    assert set(KEYS.conceal("code", payload)) <= set(ALPHABET + ".")


@pytest.mark.parametrize("place", range(len(CONCEALED)))
def test_a_concealed_token_with_any_one_character_changed_is_refused(place: int) -> None:
    for character in {*ALPHABET, ".", "=", "+", "/", " ", "\n", "é", "\ud800"} - {CONCEALED[place]}:
        assert KEYS.reveal("code", CONCEALED[:place] + character + CONCEALED[place + 1 :]) is None


@pytest.mark.parametrize("place", range(len(CONCEALED) + 1))
def test_a_concealed_token_with_a_character_more_or_less_is_refused(place: int) -> None:
    for character in "A.= \t\n":
        assert KEYS.reveal("code", CONCEALED[:place] + character + CONCEALED[place:]) is None
    if place < len(CONCEALED):
        assert KEYS.reveal("code", CONCEALED[:place] + CONCEALED[place + 1 :]) is None


@settings(deadline=None)
@given(st.text() | st.text(alphabet=ALPHABET, max_size=80).map("c1.{}".format))
def test_a_concealed_text_from_elsewhere_is_refused(token: str) -> None:
    assert KEYS.reveal("code", token) is None


def test_a_sealed_token_is_not_a_concealed_one_of_the_same_purpose_and_the_reverse() -> None:
    assert KEYS.reveal("state", TOKEN) is None
    assert KEYS.open("code", CONCEALED) is None
    assert KEYS.open("conceal code", CONCEALED) is None


def test_keys_can_be_rotated_while_concealed_tokens_are_in_use() -> None:
    rotated = KeyRing([b"next" * 8, b"current" * 5])
    assert rotated.reveal("code", CONCEALED) == b'{"subject":"ada"}'
    fresh = rotated.conceal("code", b"new")
    assert KEYS.reveal("code", fresh) is None
    assert KeyRing([b"next" * 8]).reveal("code", fresh) == b"new"


def test_a_concealed_token_of_another_key_is_reported_and_a_text_of_another_form_is_not() -> None:
    ring, foreign = KeyRing([b"other" * 8]), 0

    def count() -> None:
        nonlocal foreign
        foreign += 1

    ring.on_foreign = count
    assert [ring.reveal("code", token) for token in (CONCEALED, "c1.", "c1.AAAA", "c2." + CONCEALED[3:], TOKEN)] == [
        None
    ] * 5
    assert foreign == 1


def test_servers_that_share_keys_can_not_reveal_what_the_other_concealed() -> None:
    orders, menu = KEYS.of("orders"), KEYS.of("menu")
    token = orders.conceal("code", b"a")
    assert (orders.reveal("code", token), menu.reveal("code", token), KEYS.reveal("code", token)) == (b"a", None, None)


def test_each_key_of_a_ring_has_a_secret_of_its_own_for_each_purpose() -> None:
    rotated = KeyRing([b"next" * 8, b"current" * 5])
    secrets = [*rotated.derive("sign"), *rotated.derive("store"), *rotated.of("orders").derive("sign")]
    assert len(set(secrets)) == 6
    assert {len(secret) for secret in secrets} == {32}
    assert rotated.derive("sign")[1:] == KEYS.derive("sign")


def test_concealing_without_the_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(ModuleNotFoundError, match=r"funcmcp\[auth\]"):
        KEYS.conceal("code", b"a")
    with pytest.raises(ModuleNotFoundError, match=r"funcmcp\[auth\]"):
        KEYS.reveal("code", CONCEALED)
