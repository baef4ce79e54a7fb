"""Configured URLs that authentication depends on."""

from __future__ import annotations

import pytest

from funcmcp._auth.urls import checked, checked_insecure_hosts


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


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("keycloak:8080", "http://keycloak:8080/realms/orders"),
        ("keycloak:8080", "http://Keycloak:8080/realms/orders"),
        ("Keycloak:8080", "http://keycloak:8080"),
        ("keycloak", "http://keycloak/keys"),
        ("10.0.0.7:80", "http://10.0.0.7:80/keys"),
        ("[fd00::7]:80", "http://[fd00::7]:80/keys"),
        ("keycloak.auth.svc.cluster.local", "http://keycloak.auth.svc.cluster.local/keys"),
    ],
)
def test_a_host_that_is_named_needs_no_tls_and_is_warned_of(
    host: str, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    hosts = checked_insecure_hosts("The option", [host])
    assert checked("The URL", url, hosts).netloc
    assert f"The option: requests to {host.lower()} go without TLS" in caplog.text


@pytest.mark.parametrize(
    "url",
    [
        "http://keycloak/",
        "http://keycloak:80/",
        "http://keycloak:8081/",
        "http://other:8080/",
        "http://keycloak:8080.example.com/",
        "http://keycloak.example.com:8080/",
        "http://keycloak:08080/",
        "ftp://keycloak:8080/",
        "ws://keycloak:8080/",
    ],
)
def test_a_host_that_is_named_allows_no_other_host_port_or_scheme(url: str) -> None:
    with pytest.raises(ValueError, match="must begin with https://"):
        checked("The URL", url, checked_insecure_hosts("The option", ["keycloak:8080"]))


@pytest.mark.parametrize("url", ["http://keycloak:8080@evil.example/", "http://evil.example/#@keycloak:8080"])
def test_a_url_that_hides_its_host_is_an_error(url: str) -> None:
    with pytest.raises(ValueError, match="must be an absolute URL"):
        checked("The URL", url, checked_insecure_hosts("The option", ["keycloak:8080"]))


@pytest.mark.parametrize(
    "host", ["", "*", "*:8080", "http://keycloak", "keycloak/", "a b", "a@b", "keycloak:", "keycloak:x", "a\nb", "é"]
)
def test_a_pattern_or_a_url_is_not_a_host(host: str) -> None:
    with pytest.raises(ValueError, match="The option has hosts with their port"):
        checked_insecure_hosts("The option", [host])
    with pytest.raises(TypeError, match="list"):
        checked_insecure_hosts("The option", "keycloak:8080")


def test_a_url_without_tls_is_refused_with_the_option_for_its_host() -> None:
    hosts = checked_insecure_hosts("The option", ["keycloak"])
    with pytest.raises(ValueError, match=r"insecure_hosts=\['keycloak:8080'\]\.$"):
        checked("The URL", "http://Keycloak:8080/realms/orders", hosts)
    with pytest.raises(ValueError, match=r"'http://keycloak:8080/'\.$"):
        checked("The URL", "http://keycloak:8080/")


def test_no_host_is_nothing_to_warn_of(caplog: pytest.LogCaptureFixture) -> None:
    assert checked_insecure_hosts("The option", ()) == frozenset()
    assert caplog.text == ""


def test_hosts_that_are_passed_on_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    hosts = checked_insecure_hosts("OIDC.insecure_hosts", ["keycloak:8080"])
    assert checked_insecure_hosts("JWKS.insecure_hosts", hosts) is hosts
    assert len(caplog.records) == 1
