"""The address that a server listens on."""

from __future__ import annotations

import pytest

from funcmcp._transports.http.listen_address import ListenAddress, listen_address

FUNCMCP = {"FUNCMCP_HOST": "0.0.0.0", "FUNCMCP_PORT": "9001"}


@pytest.mark.parametrize(
    ("host", "port", "environment", "address"),
    [
        (None, None, {}, ListenAddress("127.0.0.1", 8000)),
        ("::1", 9000, {**FUNCMCP, "PORT": "9002"}, ListenAddress("::1", 9000)),
        (None, None, FUNCMCP, ListenAddress("0.0.0.0", 9001, "FUNCMCP_HOST", "FUNCMCP_PORT")),
        (None, 0, FUNCMCP, ListenAddress("0.0.0.0", 0, "FUNCMCP_HOST")),
        (None, None, {**FUNCMCP, "PORT": "9002"}, ListenAddress("0.0.0.0", 9001, "FUNCMCP_HOST", "FUNCMCP_PORT")),
        (None, None, {"PORT": "9002"}, ListenAddress("127.0.0.1", 9002, "", "PORT")),
        (
            None,
            None,
            {"FUNCTIONS_CUSTOMHANDLER_PORT": "9003", "PORT": "9002"},
            ListenAddress("127.0.0.1", 9003, "", "FUNCTIONS_CUSTOMHANDLER_PORT"),
        ),
        (None, None, {"FUNCMCP_HOST": " ", "FUNCMCP_PORT": "", "PORT": ""}, ListenAddress("127.0.0.1", 8000)),
    ],
)
def test_options_come_first_then_the_variables_then_the_port_of_a_platform(
    host: str | None, port: int | None, environment: dict[str, str], address: ListenAddress
) -> None:
    assert listen_address(host, port, environment) == address


@pytest.mark.parametrize("variable", ["FUNCMCP_PORT", "FUNCTIONS_CUSTOMHANDLER_PORT", "PORT"])
@pytest.mark.parametrize("value", ["abc", "-1", "65536", "8000.0", "٨٠", "9" * 5000, "tcp://10.0.0.1:80"])
def test_a_port_that_is_none_is_an_error_with_the_name_of_its_variable(variable: str, value: str) -> None:
    with pytest.raises(ValueError, match=rf"^{variable} must be a port, a number from 0 to 65535; got '"):
        listen_address(None, None, {variable: value})
    assert listen_address(None, 80, {variable: value}).port == 80


def test_the_note_names_the_variables_that_have_decided() -> None:
    assert listen_address(None, None, FUNCMCP).origin_note == "host from FUNCMCP_HOST and port from FUNCMCP_PORT"
    assert listen_address("::1", None, {"PORT": "1"}).origin_note == "port from PORT"
    assert listen_address(None, None, {}).origin_note == ""


@pytest.mark.parametrize(
    ("host", "environment", "expected"),
    [
        (None, {"PORT": "1"}, True),
        ("127.0.0.1", {"PORT": "1", "FUNCMCP_HOST": "::1"}, True),
        (None, {"PORT": "1", "FUNCMCP_HOST": "127.0.0.1"}, False),
        ("0.0.0.0", {"PORT": "1"}, False),
        (None, {"FUNCMCP_PORT": "1"}, False),
    ],
)
def test_a_port_of_a_platform_alone_is_told_apart(
    host: str | None, environment: dict[str, str], expected: bool
) -> None:
    assert listen_address(host, None, environment).is_only_platform_port is expected
