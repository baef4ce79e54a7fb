"""What a server says about how to be let in."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from funcmcp._auth.authenticator import Challenge
from funcmcp._auth.protected_resource import ProtectedResource, insufficient_scope, unauthorized

ISSUER = "https://login.example.com"
METADATA = "https://orders.example.com/.well-known/oauth-protected-resource/mcp"
PARAMETER = r'([a-z_]+)="([\x20\x21\x23-\x5b\x5d-\x7e]*)"'
CHALLENGE = re.compile(f"Bearer ({PARAMETER}, )*{PARAMETER}")


def resource(url: str = "https://orders.example.com/mcp", **options: Any) -> ProtectedResource:
    return ProtectedResource(resource=url, **{"authorization_servers": [ISSUER], **options})


def parameters(value: str) -> dict[str, str]:
    """Return the parameters of a challenge that is exactly as RFC 9110 section 11.2 has it."""
    assert CHALLENGE.fullmatch(value)
    return dict(re.findall(PARAMETER, value))


class TestDocument:
    def test_it_says_what_is_known(self) -> None:
        metadata = resource(
            scopes=["read", "offline_access", "write"], name="Orders", documentation="https://d.example/"
        )
        assert metadata.document == {
            "resource": "https://orders.example.com/mcp",
            "authorization_servers": [ISSUER],
            "scopes_supported": ["read", "write"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Orders",
            "resource_documentation": "https://d.example/",
        }

    def test_it_leaves_out_what_is_not(self) -> None:
        assert resource().document == {
            "resource": "https://orders.example.com/mcp",
            "authorization_servers": [ISSUER],
            "bearer_methods_supported": ["header"],
        }

    @pytest.mark.parametrize(
        ("url", "paths", "metadata_url"),
        [
            ("https://a.example/mcp", ["/mcp", ""], "https://a.example/.well-known/oauth-protected-resource/mcp"),
            ("https://a.example", [""], "https://a.example/.well-known/oauth-protected-resource"),
            ("https://a.example/", [""], "https://a.example/.well-known/oauth-protected-resource"),
            (
                "https://a.example:8443/x/mcp/",
                ["/x/mcp/", "/x/mcp", ""],
                "https://a.example:8443/.well-known/oauth-protected-resource/x/mcp/",
            ),
            (
                "http://localhost:8000/mcp?a=b",
                ["/mcp", ""],
                "http://localhost:8000/.well-known/oauth-protected-resource/mcp?a=b",
            ),
        ],
    )
    def test_it_is_where_clients_look(self, url: str, paths: list[str], metadata_url: str) -> None:
        metadata = resource(url)
        assert metadata.paths == tuple("/.well-known/oauth-protected-resource" + path for path in paths)
        assert metadata.metadata_url == metadata_url

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "/mcp",
            "orders.example.com/mcp",
            "http://orders.example.com/mcp",
            "https://a.example/mcp#x",
            "https:///mcp",
            'https://a.example/"',
            "https://a.example/\r\nX: y",
            "https://a.example/é",
            "https://a.example/a b",
        ],
    )
    def test_a_url_that_clients_can_not_use_is_refused(self, url: str) -> None:
        with pytest.raises(ValueError, match="The resource must"):
            resource(url)
        with pytest.raises(ValueError, match="An authorization server must"):
            resource(authorization_servers=[url])

    def test_without_an_authorization_server_there_is_no_way_in(self) -> None:
        with pytest.raises(ValueError, match="at least one authorization server"):
            resource(authorization_servers=[])

    @pytest.mark.parametrize("name", ["authorization_servers", "scopes"])
    def test_one_string_is_no_list(self, name: str) -> None:
        with pytest.raises(TypeError, match="not one string"):
            resource(**{name: ISSUER})

    def test_a_page_for_developers_must_be_a_url(self) -> None:
        with pytest.raises(ValueError, match="The documentation must"):
            resource(documentation="see the wiki")

    @pytest.mark.parametrize("scope", ["", "a b", 'a"b', "a\\b", "é", "a\r\nb"])
    def test_what_is_no_scope_is_refused(self, scope: str) -> None:
        with pytest.raises(ValueError, match="is not a scope"):
            resource(scopes=["read", scope])
        with pytest.raises(ValueError, match="is not a scope"):
            insufficient_scope([scope])


class TestUnauthorized:
    def test_without_credentials_nothing_is_said_of_an_error(self) -> None:
        value = unauthorized(None, metadata_url=METADATA, scopes=["read"])
        assert value == f'Bearer scope="read", resource_metadata="{METADATA}"'

    def test_refused_credentials_are_told_why(self) -> None:
        value = unauthorized(Challenge("invalid_token", "The token has expired."), metadata_url=METADATA)
        assert value == (
            f'Bearer error="invalid_token", error_description="The token has expired.", resource_metadata="{METADATA}"'
        )

    def test_without_metadata_it_is_still_a_challenge(self) -> None:
        assert unauthorized(None) == 'Bearer realm="mcp"'
        assert unauthorized(Challenge("invalid_request", "No.")) == (
            'Bearer error="invalid_request", error_description="No."'
        )

    @settings(deadline=None)
    @given(st.text())
    def test_a_description_never_leaves_its_quotes(self, description: str) -> None:
        value = unauthorized(Challenge("invalid_token", description), metadata_url=METADATA)
        challenge = parameters(value)
        assert challenge["error"] == "invalid_token"
        assert challenge["resource_metadata"] == METADATA

    @pytest.mark.parametrize(
        "url", ["/relative", "http://a.example/x", 'https://a.example/"', "https://a.example/\r\n"]
    )
    def test_the_place_of_the_metadata_is_absolute_and_fit_for_a_header(self, url: str) -> None:
        with pytest.raises(ValueError, match="The metadata URL must"):
            unauthorized(None, metadata_url=url)


class TestInsufficientScope:
    def test_it_names_every_scope_that_is_needed_at_once(self) -> None:
        value = insufficient_scope(["orders.read", "orders.write", "orders.read"], metadata_url=METADATA)
        assert parameters(value) == {
            "error": "insufficient_scope",
            "error_description": "More scopes are needed.",
            "scope": "orders.read orders.write",
            "resource_metadata": METADATA,
        }

    def test_it_never_asks_for_offline_access(self) -> None:
        assert parameters(insufficient_scope(["offline_access", "read"]))["scope"] == "read"
        assert "scope" not in parameters(insufficient_scope(["offline_access"]))

    def test_its_description_never_leaves_its_quotes(self) -> None:
        value = insufficient_scope(["read"], description='a "b"\r\nX-Evil: 1')
        assert parameters(value)["error_description"] == "a  b   X-Evil: 1"
