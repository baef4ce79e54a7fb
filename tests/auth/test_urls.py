"""Configured URLs that authentication depends on."""

from __future__ import annotations

import pytest

from funcmcp._auth.urls import checked


@pytest.mark.parametrize(
    "url",
    [
        "https://login.example.com/keys?a=b",
        "https://login.example.com:8443",
        "http://localhost:8000/keys",
        "http://127.0.0.1/keys",
        "http://127.9.9.9/keys",
        "http://[::1]:8000/keys",
    ],
)
def test_https_and_loopback_urls_are_accepted(url: str) -> None:
    assert checked("The URL", url).geturl() == url


@pytest.mark.parametrize(
    "url",
    ["", "login.example.com", "/keys", "https://", "https://user@a.example", "https://a.example/#b", "https:///x"],
)
def test_a_url_without_host_or_with_user_name_or_fragment_is_an_error(url: str) -> None:
    with pytest.raises(ValueError, match="The issuer must be an absolute URL without user name and fragment"):
        checked("The issuer", url)


@pytest.mark.parametrize(
    "url", ["https://a.example/ b", 'https://a.example/"', "https://a.example/\r\n", "https://é.example"]
)
def test_a_url_with_characters_that_a_header_can_not_quote_is_an_error(url: str) -> None:
    with pytest.raises(ValueError, match="must be an absolute URL"):
        checked("The URL", url)


@pytest.mark.parametrize(
    "url",
    ["http://login.example.com", "http://127.0.0.1.example.com", "http://localhost.example.com", "ftp://localhost"],
)
def test_a_url_without_tls_to_another_machine_is_an_error(url: str) -> None:
    with pytest.raises(ValueError, match="must begin with https://"):
        checked("The URL", url)
