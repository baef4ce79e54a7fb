"""The frame of an app: its policy, and who gets it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from funcmcp import HTTPOptions, MCPServer
from funcmcp._client.http_messages import MemoryRequest
from funcmcp._page.app_frame import app_frame
from funcmcp._serving.composition import runtime_of

if TYPE_CHECKING:
    from funcmcp._transports.http.messages import HttpResponse

STRICT = {
    "default-src": "'none'",
    "script-src": "'unsafe-inline'",
    "style-src": "'unsafe-inline'",
    "img-src": "data: blob:",
    "font-src": "data:",
    "media-src": "data: blob:",
    "connect-src": "'none'",
    "frame-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'self'",
    "sandbox": "allow-scripts",
}


class _Request(MemoryRequest):
    """A request of a browser with a query."""

    @property
    def query_string(self) -> str:
        return "app=2026-01-26"


def policy_of(response: HttpResponse | None) -> dict[str, str]:
    assert response is not None
    directives = dict(response.headers)["content-security-policy"].split("; ")
    return dict(directive.split(" ", 1) for directive in directives)


def test_without_origins_an_app_loads_nothing_and_its_origin_is_opaque() -> None:
    assert policy_of(app_frame("app=2026-01-26")) == STRICT


def test_the_policy_has_the_origins_of_the_query_and_nothing_else() -> None:
    query = [
        ("app", "2026-01-26"),
        ("connectDomains", "https://api.example.com"),
        ("connectDomains", "wss://*.example.com:8443"),
        ("connectDomains", "http://localhost:3000"),
        ("connectDomains", "http://api.example.com"),
        ("connectDomains", "https://api.example.com/path"),
        ("connectDomains", "*"),
        ("connectDomains", "https:"),
        ("resourceDomains", "https://cdn.example.com"),
        ("resourceDomains", "https://a.example; script-src *"),
        ("resourceDomains", "https://a.example\r\nset-cookie: a=b"),
        ("resourceDomains", "'unsafe-eval'"),
        ("frameDomains", "data:"),
        ("baseUriDomains", "https://\u0430.example"),
        ("sandbox", "allow-same-origin"),
    ]
    cdn = "https://cdn.example.com"
    assert policy_of(app_frame(urlencode(query))) == STRICT | {
        "script-src": f"'unsafe-inline' {cdn}",
        "style-src": f"'unsafe-inline' {cdn}",
        "img-src": f"data: blob: {cdn}",
        "font-src": f"data: {cdn}",
        "media-src": f"data: blob: {cdn}",
        "connect-src": "https://api.example.com wss://*.example.com:8443 http://localhost:3000",
    }


async def test_it_is_where_the_page_is() -> None:
    fields = [(b"host", b"localhost:8000"), (b"accept", b"text/html")]
    statuses = []
    for page in (None, False):
        request = _Request("GET", "/mcp", fields, b"")
        request.server = "127.0.0.1"
        response = await runtime_of(MCPServer("Page", http=HTTPOptions(page=page))).exchange(request)
        statuses.append(response.status)
        if page is None:
            assert policy_of(response) == STRICT
    assert statuses == [200, 405]
    assert app_frame("code=1&state=2") is None
