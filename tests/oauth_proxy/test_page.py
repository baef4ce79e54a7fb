"""The consent page: the icon of the server, and what its policy allows for it."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._oauth_proxy.clients import OAuthClient
from funcmcp._oauth_proxy.page import Question, consent_page, refusal_page
from funcmcp._oauth_proxy.web import WebRequest

DATA = "data:image/png;base64,iVBORw0KGgo="
WEB = "https://cdn.example.com/icons/a;b,c.png?size=48&x='"
SOURCE = "https://cdn.example.com/icons/a%3Bb%2Cc.png"


def page_with(*icons: dict[str, Any]) -> tuple[str, str]:
    """Return the page for a server with icons, and its policy."""
    client = OAuthClient("id", "Notes", ("https://app.example.com/back",), refreshes=True)
    question = Question("Orders", icons, "Login", client, "https://app.example.com/back", ["See"], "/", "t", "k")
    answer = consent_page(question)
    return answer.body.decode(), dict(answer.headers)["content-security-policy"]


@pytest.mark.parametrize(
    ("icons", "images", "sources"),
    [
        ([], 0, ""),
        ([{"src": DATA}], 1, "; img-src data:"),
        ([{"src": WEB, "theme": "light"}], 1, f"; img-src {SOURCE}"),
        ([{"src": DATA, "theme": "dark"}], 1, "; img-src data:"),
        ([{"src": WEB}, {"src": DATA, "theme": "dark"}], 1, f"; img-src {SOURCE} data:"),
        ([{"src": "http://cdn.example.com/a.png"}, {"src": DATA}], 1, "; img-src data:"),
        ([{"src": "data:text/html,<script>alert(1)</script>"}], 0, ""),
        ([{"src": "https://cdn.example.com; script-src *"}], 0, ""),
        ([{"src": "https://cdn.example.com/a b"}, {"src": None}, {}], 0, ""),
    ],
)
def test_the_page_shows_an_icon_that_its_policy_allows(icons: list[dict[str, Any]], images: int, sources: str) -> None:
    html, policy = page_with(*icons)
    assert html.count("<img ") == images
    assert policy.endswith(f"frame-ancestors 'none'{sources}")
    assert policy.count("img-src") == (1 if sources else 0)
    assert "alert" not in html


def test_an_icon_can_not_end_its_attribute() -> None:
    html, _ = page_with({"src": 'https://cdn.example.com/a.png?"><script>'})
    assert "<script" not in html
    assert 'src="https://cdn.example.com/a.png?&quot;&gt;&lt;script&gt;"' in html


def test_the_dark_icon_is_for_dark_pages_only() -> None:
    html, _ = page_with({"src": WEB}, {"src": DATA, "theme": "dark"})
    assert f'<source media="(prefers-color-scheme: dark)" srcset="{DATA}">' in html


def test_a_refusal_shows_the_server_and_what_to_do() -> None:
    request = WebRequest("GET", "/oauth/authorize", "", {}, b"", "", "Orders <&>", [{"src": DATA}])
    answer = refusal_page(request, 400, "This page has expired", "Start <again>.")
    html = answer.body.decode()
    assert answer.status == 400
    assert f'<img class="icon" src="{DATA}"' in html
    assert (
        '<p class="note"><bdi>Orders &lt;&amp;&gt;</bdi></p>\n<h1>This page has expired</h1>\n<p>Start &lt;again&gt;.'
        in html
    )
    assert dict(answer.headers)["content-security-policy"].endswith("; img-src data:")
