from __future__ import annotations

import pytest

from funcmcp._protocol.loopback import address_of, is_loopback


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST", "127.0.0.1", "127.0.0.2", "127.255.255.254"),
        *("::1", "[::1]", "[0:0:0:0:0:0:0:1]", "::ffff:127.0.0.1", "[::ffff:127.0.0.1]", "::1%lo"),
    ],
)
def test_a_host_that_only_this_machine_reaches_is_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        *("", "localhost.evil.example", "evil-localhost", "127.0.0.1.evil.example", "127.1", "0.0.0.0", "::"),
        *("[::1", "10.0.0.1", "::ffff:10.0.0.1", "/run/app.sock", "example.com"),
    ],
)
def test_any_other_host_is_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_the_address_of_a_host_is_the_one_of_ipv4_if_both_exist() -> None:
    assert str(address_of("[::ffff:10.0.0.1]")) == "10.0.0.1"
    assert str(address_of("fe80::1%eth0")) == "fe80::1"
    assert address_of("localhost") is None
