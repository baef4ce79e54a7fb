"""Keys that the environment gives."""

from __future__ import annotations

import base64
import os
import subprocess
import sys

import pytest

from funcmcp._state.keys import CommandKey, configured_keys, hkdf
from funcmcp._state.seal import KeyRing
from tests.patience import PATIENCE

FIRST, SECOND = b"\xfb\xff" * 20, b"second" * 6
BOTH = ",".join(base64.urlsafe_b64encode(secret).decode().rstrip("=") for secret in (FIRST, SECOND))
PLATFORM = bytes(range(32))


def opens(keys: KeyRing, other: KeyRing) -> bool:
    return keys.open("purpose", other.seal("purpose", b"payload")) == b"payload"


def test_the_first_key_of_the_environment_seals_and_all_of_them_open() -> None:
    keys = configured_keys({"FUNCMCP_KEYS": BOTH})
    assert keys.shared
    assert opens(KeyRing([FIRST]), keys)
    assert not opens(KeyRing([SECOND]), keys)
    assert opens(keys, KeyRing([SECOND]))


def test_a_ring_is_rotated_by_putting_a_new_key_in_front_and_later_leaving_the_old_one_out() -> None:
    old, new = BOTH.split(",")
    before, between, after = (configured_keys({"FUNCMCP_KEYS": text}) for text in (old, f"{new},{old}", new))
    assert opens(between, before)
    assert opens(after, between)
    assert not opens(after, before)


@pytest.mark.parametrize(
    "spelling",
    [
        base64.b64encode(FIRST).decode(),
        base64.b64encode(FIRST).decode().rstrip("="),
        base64.urlsafe_b64encode(FIRST).decode(),
        f" {base64.urlsafe_b64encode(FIRST).decode()}\n",
    ],
)
def test_a_key_may_be_spelled_in_either_base64_and_with_or_without_padding(spelling: str) -> None:
    assert opens(configured_keys({"FUNCMCP_KEYS": spelling}), KeyRing([FIRST]))


@pytest.mark.parametrize("text", ["", ",", "short", BOTH + ",", BOTH + ",short", "ä" * 43, "a" * 42 + "!", "a" * 41])
def test_keys_that_are_none_are_refused_by_the_name_of_their_variable_alone(text: str) -> None:
    with pytest.raises(ValueError, match="FUNCMCP_KEYS must contain secrets of at least 32 bytes") as caught:
        configured_keys({"FUNCMCP_KEYS": text})
    for part in text.split(","):
        assert not part or part not in str(caught.value)


@pytest.mark.parametrize("variable", ["WEBSITE_AUTH_ENCRYPTION_KEY", "CONTAINER_ENCRYPTION_KEY"])
@pytest.mark.parametrize("text", [PLATFORM.hex(), PLATFORM.hex().upper(), base64.b64encode(PLATFORM).decode()])
def test_on_azure_the_key_is_derived_from_the_one_that_the_platform_gives_every_instance(
    variable: str, text: str
) -> None:
    keys, other = configured_keys({variable: text}), configured_keys({variable: PLATFORM.hex()})
    assert keys.shared
    assert opens(keys, other)
    assert not opens(KeyRing([PLATFORM]), keys)


def test_keys_of_ones_own_go_before_those_of_the_platform() -> None:
    keys = configured_keys({"FUNCMCP_KEYS": BOTH, "WEBSITE_AUTH_ENCRYPTION_KEY": "none"})
    assert opens(KeyRing([FIRST]), keys)


def test_the_sites_key_goes_before_the_containers() -> None:
    site = {"WEBSITE_AUTH_ENCRYPTION_KEY": PLATFORM.hex()}
    assert opens(configured_keys({**site, "CONTAINER_ENCRYPTION_KEY": "00" * 32}), configured_keys(site))


@pytest.mark.parametrize("text", ["g" * 64, "c2hvcnQ=", "no base64!", "ä" * 64])
def test_a_platform_key_of_another_shape_is_refused_by_the_name_of_its_variable_alone(text: str) -> None:
    with pytest.raises(ValueError, match="CONTAINER_ENCRYPTION_KEY must contain a key of 32 bytes") as caught:
        configured_keys({"WEBSITE_AUTH_ENCRYPTION_KEY": "", "CONTAINER_ENCRYPTION_KEY": text})
    assert text not in str(caught.value)


def test_without_any_the_key_is_random_and_nobody_elses() -> None:
    keys = configured_keys({})
    assert not keys.shared
    assert opens(keys, keys)
    assert not opens(configured_keys({}), keys)


def test_hkdf_gives_what_rfc_5869_says() -> None:
    derived = hkdf(b"\x0b" * 22, salt=bytes(range(13)), info=bytes(range(0xF0, 0xFA)))
    assert derived.hex() == "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"


def test_children_find_one_random_key_that_is_gone_afterwards() -> None:
    environment: dict[str, str] = {}
    with CommandKey(environment).in_children():
        assert opens(configured_keys(environment), configured_keys(environment))
        first = dict(environment)
    assert environment == {}
    with CommandKey(environment).in_children():
        assert environment != first


def test_the_processes_of_a_command_share_its_random_key_which_is_not_one_of_the_operator() -> None:
    environment: dict[str, str] = {}
    key = CommandKey(environment)
    with key.in_this_process():
        first = configured_keys(environment).of("shop")
    assert environment == {}
    with key.in_children():
        second = configured_keys(environment).of("shop")
    assert opens(first, second)
    assert (first.shared, second.shared) == (False, True)
    assert (first.lasting, second.lasting) == (False, False)


def test_keys_of_the_operator_last_and_random_ones_do_not() -> None:
    assert configured_keys({"FUNCMCP_KEYS": BOTH}).of("shop").lasting
    assert configured_keys({"CONTAINER_ENCRYPTION_KEY": PLATFORM.hex()}).lasting
    assert not configured_keys({}).lasting


def test_a_block_in_a_block_leaves_the_key_of_the_outer_one() -> None:
    environment: dict[str, str] = {}
    key = CommandKey(environment)
    with key.in_this_process():
        before = dict(environment)
        with key.in_children():
            assert len(environment) == 2
        assert environment == before
    assert environment == {}


@pytest.mark.parametrize("configured", [{"FUNCMCP_KEYS": BOTH}, {"CONTAINER_ENCRYPTION_KEY": PLATFORM.hex()}])
def test_children_inherit_configured_keys(configured: dict[str, str]) -> None:
    environment = dict(configured)
    with CommandKey(environment).in_children():
        assert environment == configured
    assert environment == configured


def test_a_server_with_keys_that_are_none_is_not_made() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", "import funcmcp; funcmcp.MCPServer('m')"],
        env={**os.environ, "FUNCMCP_KEYS": "hunter2"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 1
    assert "ValueError: The environment variable FUNCMCP_KEYS must contain" in ended.stderr
    assert "hunter2" not in ended.stderr
