"""`OAuthProxy(clients=[...])`: which applications may sign users in."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._oauth_proxy.allowed_clients import AllowedClients
from tests.oauth_proxy.stage import BACK, Stage

CLAUDE = "https://claude.ai/api/mcp/auth_callback"
LOOPBACK = "http://127.0.0.1:4711/callback"


@pytest.mark.parametrize(
    ("clients", "uris", "allowed"),
    [
        (["https://claude.ai"], [CLAUDE], True),
        (["https://CLAUDE.ai/"], [CLAUDE], True),
        (["https://claude.ai"], [CLAUDE, BACK], False),
        (["https://claude.ai"], ["https://claude.ai.example.com/api"], False),
        (["https://claude.ai"], ["https://sub.claude.ai/api"], False),
        (["https://claude.ai"], ["https://claude.ai:8443/api"], False),
        (["https://claude.ai:8443"], ["https://claude.ai:8443/api"], True),
        (["https://claude.ai"], [LOOPBACK], False),
        (["http://localhost"], [LOOPBACK, "http://localhost/callback", "http://[::1]:80/callback"], True),
        (["http://127.0.0.1"], ["http://localhost:1/callback"], True),
        (["https://localhost"], [LOOPBACK], False),
        (["cursor:"], ["cursor://anysphere.cursor-mcp/oauth/callback"], True),
        (["cursor://"], ["cursor://anysphere.cursor-mcp/oauth/callback"], True),
        (["cursor:"], ["cursors://anysphere"], False),
    ],
)
def test_each_place_to_return_to_must_be_in_the_list(clients: list[str], uris: list[str], allowed: bool) -> None:
    assert AllowedClients(clients).allows_uris(uris) is allowed


@pytest.mark.parametrize(
    "entry", ["", "claude.ai", "https://", "https://claude.ai/api", "https://a@claude.ai", "https://claude.ai?x=1",
              "http://claude.ai", "https://*.claude.ai", "http:", "https:"]
)  # fmt: skip
def test_another_form_of_an_entry_is_refused(entry: str) -> None:
    with pytest.raises(ValueError, match=r"An entry of OAuthProxy\.clients"):
        AllowedClients([entry])


def test_a_list_must_be_one_and_have_entries() -> None:
    with pytest.raises(TypeError, match="not one string"):
        AllowedClients("https://claude.ai")
    with pytest.raises(ValueError, match="None allows every client"):
        AllowedClients([])


async def test_another_application_can_not_register() -> None:
    stage = Stage(clients=["https://claude.ai"])
    refused = await stage.register()
    assert (refused.status, refused.json["error"]) == (400, "invalid_redirect_uri")
    assert "operator" in refused.json["error_description"]
    assert (await stage.register(redirect_uris=[CLAUDE])).status == 201


async def test_an_application_that_was_allowed_before_ends_at_each_step() -> None:
    stage = await Stage().with_client()
    tokens = await stage.tokens()
    code = await stage.code()
    stage.proxy = stage.instance(clients=["https://claude.ai"])
    page = await stage.authorize()
    assert (page.status, page.is_page) == (403, True)
    assert "operator" in page.text
    for answer in (await stage.exchange(code), await stage.refresh(tokens["refresh_token"])):
        assert (answer.status, answer.json["error"]) == (401, "invalid_client")


class NoDocuments:
    """Fails the test if a document is requested."""

    async def client(self, url: str) -> Any:
        raise AssertionError(url)


async def test_the_document_of_another_host_is_never_requested() -> None:
    stage = Stage(clients=["https://claude.ai"])
    object.__setattr__(stage.proxy._settings, "documents", NoDocuments())
    document = "https://evil.example.com/client.json"
    page = await stage.authorize(client_id=document)
    assert page.status == 403
    assert (await stage.exchange("code", client_id=document)).json["error"] == "invalid_client"
    # The host of the list is allowed, wherever its document lets users return to.
    answer = await stage.exchange("code", client_id="https://claude.ai/client.json")
    assert answer.json["error"] == "invalid_grant"
