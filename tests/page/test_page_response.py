"""The HTTP of the page at the endpoint: who gets it, its headers, and its Content-Security-Policy."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from funcmcp import HTTPOptions, MCPServer
from funcmcp._client.http_messages import MemoryRequest
from funcmcp._page.page import SCRIPTS, page_document
from funcmcp._serving.composition import runtime_of
from funcmcp._transports.http.options import PAGE_VARIABLE
from funcmcp.auth import APIKeys, Auth, ProtectedResource
from funcmcp.state import MemoryRates
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import HttpResponse

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
EVENTS = "text/event-stream"
FILES = REPOSITORY / "src/funcmcp/_page/files"


class _HostedRequest(MemoryRequest):
    """A request that a platform passes on."""

    @property
    def is_hosted(self) -> bool:
        return True


def get(
    *, method: str = "GET", path: str = "/mcp", server: str | None = "127.0.0.1", hosted: bool = False, **headers: Any
) -> MemoryRequest:
    """Return a request of a browser."""
    fields = {"host": "localhost:8000", "accept": BROWSER} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    pairs = [(name.encode(), value.encode()) for name, value in fields.items() if value]
    request = (_HostedRequest if hosted else MemoryRequest)(method, path, pairs, b"")
    request.server = server
    return request


async def answer(request: MemoryRequest, **options: Any) -> HttpResponse:
    return await runtime_of(MCPServer("Page", **options)).exchange(request)


def policy_of(response: HttpResponse) -> dict[str, list[str]]:
    """Return the sources of each directive of a Content-Security-Policy."""
    directives = [directive.split() for directive in dict(response.headers)["content-security-policy"].split("; ")]
    return {name: sources for name, *sources in directives}


async def test_a_browser_gets_one_html_document() -> None:
    response = await answer(get())
    headers = dict(response.headers)
    assert (response.status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert isinstance(response.body, bytes)
    assert response.body.startswith(b"<!doctype html>")
    assert {name: headers[name] for name in ("vary", "cache-control", "x-content-type-options", "referrer-policy")} == {
        "vary": "accept",
        "cache-control": "no-cache",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
    }
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["origin-agent-cluster"] == "?1"


async def test_the_policy_allows_the_inline_script_and_style_and_the_own_origin_only() -> None:
    response = await answer(get())
    assert isinstance(response.body, bytes)
    text = response.body.decode()
    [script] = re.findall(r"<script[^>]*>(.*?)</script>", text, re.DOTALL)
    [style] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)

    def source(content: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"

    assert policy_of(response) == {
        "default-src": ["'none'"],
        "script-src": [source(script)],
        "style-src": [source(style)],
        "connect-src": ["'self'"],
        "img-src": ["data:"],
        "media-src": ["data:"],
        "frame-src": ["'self'"],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
        "frame-ancestors": ["'none'"],
        "require-trusted-types-for": ["'script'"],
        "trusted-types": ["'none'"],
    }


async def test_the_document_refers_to_nothing_that_a_browser_would_load() -> None:
    text = page_document().body.decode()
    icon, *links = re.findall(r'<[a-z]+[^>]*\s(?:src|href)="([^"]*)"', text)
    logo = (REPOSITORY / "docs/images/icon.svg").read_text(encoding="utf-8").replace("\n", "").replace('"', "'")
    assert unquote(icon) == f"data:image/svg+xml,{logo}"
    assert links == ["#main", "#", "#clients", "#sign-in"]
    assert "innerHTML" not in text
    assert "import(" not in text
    assert not re.search(r"@import|url\(", (FILES / "style.css").read_text(encoding="utf-8"))


def test_every_file_of_the_page_is_part_of_the_document() -> None:
    assert {path.name for path in FILES.iterdir()} == {*SCRIPTS, "style.css", "page.html"}
    body = page_document().body.decode()
    assert all(path.read_text(encoding="utf-8") in body for path in FILES.iterdir() if path.suffix != ".html")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"accept": EVENTS}, 405),
        ({"accept": f"{EVENTS}, text/html"}, 405),
        ({"accept": f"application/json, {EVENTS}"}, 405),
        ({"accept": "*/*"}, 405),
        ({"accept": "text/*"}, 405),
        ({"accept": "text/html;q=0, */*"}, 405),
        ({"accept": ""}, 405),
        ({"accept": "Text/HTML;q=0.5"}, 200),
        ({"host": "attacker.example"}, 421),
        ({"origin": "https://attacker.example"}, 403),
        ({"path": "/other"}, 404),
        ({"path": "/mcp/"}, 200),
        ({"method": "DELETE"}, 200),
        ({"method": "PUT"}, 405),
        ({"method": "HEAD"}, 200),
        ({"method": "HEAD", "accept": "*/*"}, 405),
    ],
)
async def test_only_a_browsers_request_to_the_endpoint_gets_the_page(headers: dict[str, Any], status: int) -> None:
    response = await answer(get(**headers))
    if headers.get("method") == "DELETE":
        assert response.status == 400  # it names no session
        return
    assert response.status == status
    has_page = ("content-type", "text/html; charset=utf-8") in response.headers
    assert has_page is (status == 200)


async def test_a_stream_of_an_mcp_client_is_what_it_was() -> None:
    response = await answer(get(accept=EVENTS), sessions="memory")
    assert response.status == 400  # a GET without a session
    response = await answer(get(accept="text/plain"), sessions="memory")
    assert response.status == 406


@pytest.mark.parametrize(
    ("request_options", "is_on"),
    [
        ({"server": "127.0.0.1", "host": "localhost:1"}, True),
        ({"server": "::1", "host": "[::1]:1"}, True),
        ({"server": "::ffff:127.0.0.1", "host": "127.0.0.1"}, True),
        ({"server": "127.0.0.1", "host": "orders.example.com"}, False),
        ({"server": "10.0.0.7", "host": "10.0.0.7"}, False),
        ({"server": None, "host": "orders.example.com"}, False),
        ({"server": None, "host": "localhost"}, False),
        ({"hosted": True}, False),
    ],
)
async def test_by_default_only_loopback_has_the_page(request_options: dict[str, Any], is_on: bool) -> None:
    hosts = ["orders.example.com", "localhost"]
    response = await answer(get(**request_options), http=HTTPOptions(allowed_hosts=hosts))
    assert response.status == (200 if is_on else 405)
    response = await answer(get(**request_options), http=HTTPOptions(allowed_hosts=hosts, page=True))
    assert response.status == 200
    response = await answer(get(**request_options), http=HTTPOptions(allowed_hosts=hosts, page=False))
    assert response.status == 405


@pytest.mark.parametrize(("value", "option", "status"), [("on", False, 200), ("OFF", True, 405), ("", False, 405)])
async def test_the_environment_overrides_the_option(
    monkeypatch: pytest.MonkeyPatch, value: str, option: bool, status: int
) -> None:
    monkeypatch.setenv(PAGE_VARIABLE, value)
    assert (await answer(get(), http=HTTPOptions(page=option))).status == status


def test_another_value_in_the_environment_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PAGE_VARIABLE, "yes")
    with pytest.raises(ValueError, match="FUNCMCP_PAGE must be 'on' or 'off'; got 'yes'"):
        MCPServer("Page")


def test_the_option_is_a_boolean_or_none() -> None:
    with pytest.raises(TypeError, match=r"HTTPOptions.page must be True, False or None; got 'on'"):
        HTTPOptions(page="on")  # type: ignore[arg-type]


async def test_a_browser_that_has_the_page_gets_304() -> None:
    first = await answer(get())
    etag = dict(first.headers)["etag"]
    for tags in (etag, f'"other", W/{etag}', "*"):
        response = await answer(get(if_none_match=tags))
        assert (response.status, response.body, dict(response.headers)["etag"]) == (304, b"", etag)
    assert (await answer(get(if_none_match='"other"'))).status == 200


async def test_the_page_counts_for_the_rate_of_a_caller() -> None:
    mcp = MCPServer("Page", http=HTTPOptions(rates=MemoryRates(per_second=0.1, burst=2)))
    responses = [await runtime_of(mcp).exchange(get()) for _ in range(3)]
    assert [response.status for response in responses] == [200, 200, 429]


async def test_the_page_needs_no_credentials_and_names_the_origins_of_the_authorization_servers() -> None:
    resource = ProtectedResource(
        resource="http://localhost:8000/mcp",
        authorization_servers=[
            "https://login.example.com/tenant",
            "https://login.example.com",
            "http://127.0.0.1:9000",
        ],
    )
    response = await answer(get(), auth=Auth(APIKeys({"ada": "0123456789abcdef"}), resource))
    assert response.status == 200
    assert policy_of(response)["connect-src"] == ["'self'", "https://login.example.com", "http://127.0.0.1:9000"]
    assert dict(response.headers)["cache-control"] == "no-store"  # as all other answers of a server with sign-in
    listing = await answer(get(accept=EVENTS), auth=APIKeys({"ada": "0123456789abcdef"}), sessions="memory")
    assert listing.status == 401
