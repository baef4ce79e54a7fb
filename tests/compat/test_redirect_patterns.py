"""Patterns of redirect URIs."""

from __future__ import annotations

import pytest

from funcmcp._compat.redirect_patterns import RedirectPatterns

PATTERNS = [
    "http://localhost:*",
    "http://127.0.0.1",
    "https://claude.ai/api/mcp/auth_callback",
    "https://*.example.com/auth/*",
    "https://app.test:8443/",
    "cursor://anysphere.cursor-mcp/*",
]


@pytest.mark.parametrize(
    ("uri", "allowed"),
    [
        ("http://localhost:3000/callback", True),
        ("http://localhost/callback", True),
        ("http://127.0.0.1:5000/x", True),
        ("https://claude.ai/api/mcp/auth_callback", True),
        ("https://CLAUDE.ai/api/mcp/auth_callback", True),
        ("https://claude.ai/api/mcp/auth_callback/more", False),
        ("https://claude.ai:8443/api/mcp/auth_callback", False),
        ("http://claude.ai/api/mcp/auth_callback", False),
        ("https://a.example.com/auth/x", True),
        ("https://example.com/auth/x", False),
        ("https://evilexample.com/auth/x", False),
        ("https://a.example.com/auth/../x", False),
        ("https://a.example.com/auth/%2e%2e/x", False),
        ("https://a.example.com/other", False),
        ("http://localhost@evil.test/callback", False),
        ("https://a.example.com\\@evil.test/auth/x", False),
        ("https://app.test:8443/any", True),
        ("https://app.test/any", False),
        ("cursor://anysphere.cursor-mcp/oauth", True),
        ("javascript:alert(1)", False),
        ("http://localhost.evil.test:3000/callback", False),
    ],
)
def test_a_redirect_uri_is_allowed_if_a_pattern_matches(uri: str, allowed: bool) -> None:
    assert RedirectPatterns(PATTERNS).allows_uris([uri]) is allowed
    assert RedirectPatterns(PATTERNS).allows_uris(["http://localhost:1/x", uri]) is allowed


def test_without_patterns_no_client_is_allowed() -> None:
    patterns = RedirectPatterns([])
    assert not patterns.allows_uris(["http://localhost:3000/callback"])
    assert not patterns.allows_document("https://claude.ai/client.json")
    with pytest.raises(TypeError, match="not one string"):
        RedirectPatterns("http://localhost:*")
