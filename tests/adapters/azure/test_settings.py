"""What the platform says of an app, and the URLs made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp import azure
from funcmcp._adapters.azure.settings import PREFIX_VARIABLE, at, route_prefix
from funcmcp._transports.http.admission.origin import OriginCheck
from funcmcp._transports.http.messages import HttpRequest
from funcmcp._transports.http.options import HTTPOptions

if TYPE_CHECKING:
    from pathlib import Path

HOST = "shop.azurewebsites.net"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEBSITE_HOSTNAME", HOST)
    return tmp_path


@pytest.mark.parametrize(
    ("settings", "prefix"),
    [
        (None, "/api"),
        ('{"version": "2.0"}', "/api"),
        ('{"extensions": {"http": null}}', "/api"),
        ('{"extensions": {"http": {"routePrefix": null}}}', "/api"),
        ('{"configurationProfile": "mcp-custom-handler"}', ""),
        ("[]", "/api"),
        ('{"extensions": {"http": {"routePrefix": ""}}}', ""),
        ('{"extensions": /* { */ {"http": {"routePrefix": "a//b",}, // "routePrefix": "c"\n},}', "/a//b"),
        ('{"Extensions": {"HTTP": {"routeprefix": "a"}}}', "/a"),
        ('\ufeff{"extensions": {"http": {"routePrefix": "a/b/"}}}', "/a/b"),
    ],
)
def test_the_route_prefix_is_what_host_json_says(folder: Path, settings: str | None, prefix: str) -> None:
    if settings is not None:
        (folder / "host.json").write_text(settings, encoding="utf-8")
    assert azure.public_url() == f"https://{HOST}{prefix}/mcp"


def test_an_app_setting_overrides_host_json(folder: Path) -> None:
    (folder / "host.json").write_text("// no JSON", encoding="utf-8")
    assert route_prefix({PREFIX_VARIABLE: "v2"}) == "/v2"
    with pytest.raises(ValueError, match=f"host.json is not JSON.*{PREFIX_VARIABLE}"):
        azure.public_url()
    (folder / "host.json").write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"host\.json is not JSON \(line 1, column 202: the values are nested too deeply"
    ):
        azure.public_url()


def test_a_url_is_the_apps_own_a_custom_domains_or_that_of_core_tools(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert azure.public_url("/tools") == f"https://{HOST}/api/tools"
    assert azure.public_url(host="mcp.example.com") == "https://mcp.example.com/api/mcp"
    monkeypatch.delenv("WEBSITE_HOSTNAME")
    assert azure.public_url() == "http://localhost:7071/api/mcp"


def test_the_metadata_is_in_its_usual_place_only_without_a_prefix(folder: Path) -> None:
    below = azure.protected_resource(["https://login.example.com"])
    assert below.metadata_url == f"https://{HOST}/api/.well-known/oauth-protected-resource/api/mcp"
    assert below.document["resource"] == f"https://{HOST}/api/mcp"
    (folder / "host.json").write_text('{"extensions": {"http": {"routePrefix": ""}}}', encoding="utf-8")
    usual = azure.protected_resource(["https://login.example.com"])
    assert usual.metadata_url == f"https://{HOST}/.well-known/oauth-protected-resource/mcp"


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({"WEBSITE_HOSTNAME": HOST}, HOST),
        ({"CONTAINER_APP_HOSTNAME": "shop--1.green.azurecontainerapps.io"}, "shop--1.green.azurecontainerapps.io"),
        (
            {"CONTAINER_APP_NAME": "shop", "CONTAINER_APP_ENV_DNS_SUFFIX": "green.azurecontainerapps.io"},
            "shop.green.azurecontainerapps.io",
        ),
    ],
)
def test_the_name_that_azure_gave_is_allowed_and_no_other(
    settings: dict[str, str], host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    check = OriginCheck(HTTPOptions())
    assert check.refusal(HttpRequest("POST", "/mcp", [(b"host", host.encode())])) is None
    assert check.refusal(HttpRequest("POST", "/mcp", [(b"host", f"x.{host}".encode())])) is not None


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ((), {"extensions": {"Http": {"routePrefix": "x"}}}),
        (("Extensions", "HTTP"), {"routePrefix": "x"}),
        (("extensions", "http", "ROUTEPREFIX"), "x"),
        (("extensions", "mcp"), None),
        (("extensions", "http", "routePrefix", "deeper"), None),
    ],
)
def test_a_path_is_found_in_any_case(keys: tuple[str, ...], value: object) -> None:
    assert at({"extensions": {"Http": {"routePrefix": "x"}}}, *keys) == value
