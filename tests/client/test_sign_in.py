"""When a client signs its user in, how the browser returns, and where the tokens are kept."""

from __future__ import annotations

import asyncio
import json
import re
import stat
import webbrowser
from time import time
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY
from urllib.parse import urlsplit

import httpx2
import pytest

from funcmcp.client import AuthenticationError, Client, HTTPEndpoint, SignIn, SignInError
from tests.client.authorizing import Visitor

if TYPE_CHECKING:
    from pathlib import Path

    from tests.client.authorizing import Authorizing

pytestmark = pytest.mark.lowest("httpx2 sends the requests.")


async def greet(server: Authorizing, **options: Any) -> str:
    """Connect as a process does that begins, and call a tool."""
    async with Client(HTTPEndpoint(server.url, sign_in=SignIn(**options))) as client:
        return (await client.call_tool("greet")).text


async def test_a_user_signs_in_once_and_the_token_is_used_to_the_end(server: Authorizing) -> None:
    visitor = Visitor()
    async with Client(HTTPEndpoint(server.url, sign_in=SignIn(open_browser=visitor, name="Notes"))) as client:
        texts = [result.text for result in await asyncio.gather(*(client.call_tool("greet") for _ in range(5)))]
    assert texts == ["hello"] * 5
    assert len(visitor.addresses) == 1
    assert visitor.query["scope"] == "orders.read"
    assert visitor.query["resource"] == server.url
    assert visitor.query["code_challenge_method"] == "S256"
    (metadata,) = server.those("register")
    assert (metadata["client_name"], metadata["application_type"]) == ("Notes", "native")


async def test_the_file_has_the_tokens_for_its_owner_only_and_spares_the_next_process_the_sign_in(
    server: Authorizing, tmp_path: Path
) -> None:
    file, visitor = tmp_path / "new" / "tokens.json", Visitor()
    assert await greet(server, open_browser=visitor, file=file) == "hello"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert await greet(server, open_browser=visitor, file=file) == "hello"
    assert len(visitor.addresses) == 1
    names = sorted(entry.name for entry in file.parent.iterdir())
    assert names == ["tokens.json", ANY, "tokens.json.lock"]
    assert re.fullmatch(r"tokens\.json\.[0-9a-f]{16}\.lock", names[1])


def change(file: Path, url: str, **members: Any) -> None:
    entries = json.loads(file.read_text())
    entries[url] |= members
    file.write_text(json.dumps(entries))


async def test_a_token_is_renewed_before_it_expires_and_when_the_server_refuses_it(
    server: Authorizing, tmp_path: Path
) -> None:
    file, visitor = tmp_path / "tokens.json", Visitor()
    await greet(server, open_browser=visitor, file=file)
    change(file, server.url, expires=1)
    await greet(server, open_browser=visitor, file=file)
    server.valid = set()
    await greet(server, open_browser=visitor, file=file)
    assert [form["grant_type"] for form in server.those("token")] == ["authorization_code"] + ["refresh_token"] * 2
    assert len(visitor.addresses) == 1
    # When the authorization server does not renew it either, the user signs in again, as the same client.
    server.valid, server.answers = set(), [(400, {"error": "invalid_grant"})]
    await greet(server, open_browser=visitor, file=file)
    assert (len(visitor.addresses), len(server.those("register"))) == (2, 1)


async def test_a_renewal_that_is_refused_before_the_end_of_a_token_is_no_failure(
    server: Authorizing, tmp_path: Path
) -> None:
    file, visitor = tmp_path / "tokens.json", Visitor()
    await greet(server, open_browser=visitor, file=file)
    change(file, server.url, expires=1)
    server.answers = [(400, {"error": "invalid_grant"})]
    assert await greet(server, open_browser=visitor, file=file) == "hello"
    assert len(visitor.addresses) == 1


async def test_a_refresh_token_that_was_refused_is_not_sent_again(server: Authorizing, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    await greet(server, open_browser=Visitor(), file=file)
    server.valid, server.answers = set(), [(400, {"error": "invalid_grant"})] * 4
    change(file, server.url, expires=1)
    with pytest.raises(SignInError):
        await greet(server, open_browser=Visitor(), file=file)
    assert [form["grant_type"] for form in server.those("token")].count("refresh_token") == 1


async def test_an_entry_of_an_earlier_version_has_no_lifetime(server: Authorizing, tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    await greet(server, open_browser=Visitor(), file=file)
    change(file, server.url, lifetime=None, expires=time() + 20)
    await greet(server, open_browser=Visitor(), file=file)
    assert server.those("token")[-1]["grant_type"] == "refresh_token"


async def test_an_outage_of_the_authorization_server_signs_nobody_out(server: Authorizing, tmp_path: Path) -> None:
    file, visitor = tmp_path / "tokens.json", Visitor()
    await greet(server, open_browser=visitor, file=file)
    server.valid, server.answers = set(), [(503, {"error": "temporarily_unavailable"})]
    with pytest.raises(SignInError, match="status 503: temporarily_unavailable"):
        await greet(server, open_browser=visitor, file=file)
    assert await greet(server, open_browser=visitor, file=file) == "hello"
    assert len(visitor.addresses) == 1


async def test_the_newer_token_of_another_process_is_used(server: Authorizing, tmp_path: Path) -> None:
    file, visitor = tmp_path / "tokens.json", Visitor()
    endpoint = HTTPEndpoint(server.url, sign_in=SignIn(open_browser=visitor, file=file))
    async with Client(endpoint) as client:
        await client.call_tool("greet")
        server.valid = set()
        await greet(server, open_browser=visitor, file=file)  # renews it
        await client.call_tool("greet")
    assert [form.get("refresh_token") for form in server.those("token")] == [None, "refresh-1"]


async def test_an_entry_of_a_later_version_is_used_and_keeps_its_members(server: Authorizing, tmp_path: Path) -> None:
    file, visitor = tmp_path / "tokens.json", Visitor()
    await greet(server, open_browser=visitor, file=file)
    client = json.loads(file.read_text())[server.url]["client"]
    change(file, server.url, expires=1, added=[1], client={**client, "added": 2})
    other = {"issuer": "https://login.example.com", "added": {}}
    file.write_text(json.dumps({**json.loads(file.read_text()), "https://other.example.com/mcp": other}))
    assert await greet(server, open_browser=visitor, file=file) == "hello"
    entries = json.loads(file.read_text())
    assert (entries[server.url]["added"], entries[server.url]["client"]["added"]) == ([1], 2)
    assert entries["https://other.example.com/mcp"] == other
    assert len(visitor.addresses) == 1


@pytest.mark.parametrize("bad", [None, 7, [None], {"a": 1}])
@pytest.mark.parametrize(
    "name", ["issuer", "token_endpoint", "client", "access_token", "expires", "scopes", "client_id", "auth_method"]
)
async def test_an_entry_that_can_not_be_read_is_a_new_sign_in(
    server: Authorizing, tmp_path: Path, name: str, bad: object
) -> None:
    file, visitor = tmp_path / "tokens.json", Visitor()
    await greet(server, open_browser=visitor, file=file)
    entries = json.loads(file.read_text())
    entry = entries[server.url]
    (entry if name in entry else entry["client"])[name] = bad
    file.write_text(json.dumps(entries))
    assert await greet(server, open_browser=visitor, file=file) == "hello"
    is_valid = name == "expires" and (bad is None or bad == 7)
    assert len(visitor.addresses) == (1 if is_valid else 2)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 1}', '{"a": {"client": 1}}', "null"])
async def test_a_file_that_has_something_else_is_replaced(server: Authorizing, tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens.json"
    file.write_text(text)
    assert await greet(server, open_browser=Visitor(), file=file) == "hello"
    assert list(json.loads(file.read_text()))[-1] == server.url


async def test_a_further_scope_is_requested_together_with_those_that_the_token_has(server: Authorizing) -> None:
    visitor = Visitor()
    server.lacks_scope = True
    with pytest.raises(AuthenticationError, match="insufficient_scope"):
        await greet(server, open_browser=visitor)
    assert len(visitor.addresses) == 2  # and not a third time for the same scope
    assert visitor.query["scope"] == "orders.read orders.write"


async def test_a_scope_that_the_token_has_already_is_not_requested_again(server: Authorizing) -> None:
    visitor = Visitor()
    server.lacks_scope = True
    with pytest.raises(AuthenticationError):
        await greet(server, open_browser=visitor, scopes=("orders.write",))
    assert len(visitor.addresses) == 1
    assert visitor.query["scope"] == "orders.write orders.read"


async def test_scopes_of_the_server_and_offline_access_are_requested_where_they_exist(server: Authorizing) -> None:
    visitor = Visitor()
    server.issuer["scopes_supported"] = ["offline_access"]
    await greet(server, open_browser=visitor)
    assert visitor.query["scope"] == "orders.read offline_access"


@pytest.mark.parametrize(
    ("options", "methods", "client_id", "secret"),
    [
        ({"client_id": "mine"}, [], "mine", None),
        ({"client_id": "mine", "client_secret": "s"}, ["client_secret_post"], "mine", "s"),
        ({"client_id": "mine", "client_secret": "s"}, [], None, None),
        ({"client_document": "https://app.example.com/client.json"}, [], "https://app.example.com/client.json", None),
    ],
)
async def test_a_client_that_is_known_already_does_not_register(
    server: Authorizing, options: dict[str, str], methods: list[str], client_id: str | None, secret: str | None
) -> None:
    server.issuer["client_id_metadata_document_supported"] = True
    server.issuer["token_endpoint_auth_methods_supported"] = methods
    visitor = Visitor()
    await greet(server, open_browser=visitor, **options)
    form = server.those("token")[0]
    assert visitor.query["client_id"] == next(iter(options.values()))
    assert (form.get("client_id"), form.get("client_secret"), server.those("register")) == (client_id, secret, [])


async def test_a_document_is_not_sent_where_it_is_not_taken(server: Authorizing) -> None:
    await greet(server, open_browser=Visitor(), client_document="https://app.example.com/client.json")
    assert len(server.those("register")) == 1


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ({"error": "access_denied", "error_description": "No.\x07"}, "access_denied No"),
        ({}, "without a code"),
        ({"iss": "https://evil.example", "code": "c"}, "another authorization server"),
        ({"iss": "https://evil.example", "error": "x"}, "another authorization server"),
    ],
)
async def test_a_browser_that_returns_without_a_usable_code_is_a_clear_error(
    server: Authorizing, returned: dict[str, str], message: str
) -> None:
    server.returned = {"iss": server.origin, **returned}
    with pytest.raises(SignInError, match=message):
        await greet(server, open_browser=Visitor())
    assert server.those("token") == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"code_challenge_methods_supported": ["plain"]}, "PKCE"),
        ({"code_challenge_methods_supported": None}, "PKCE"),
        ({"authorization_endpoint": None}, "no authorization endpoint"),
    ],
)
async def test_no_user_signs_in_where_a_code_could_be_stolen(
    server: Authorizing, changes: dict[str, Any], message: str
) -> None:
    server.issuer |= changes
    with pytest.raises(SignInError, match=message):
        await greet(server, open_browser=Visitor())
    assert server.requests == []


async def test_an_answer_without_its_issuer_is_refused_where_the_issuer_is_promised(server: Authorizing) -> None:
    server.returned = {"code": "c"}
    with pytest.raises(SignInError, match="another authorization server"):
        await greet(server, open_browser=Visitor())
    server.issuer["authorization_response_iss_parameter_supported"] = False
    assert await greet(server, open_browser=Visitor()) == "hello"


async def test_requests_of_others_to_the_port_change_nothing(server: Authorizing) -> None:
    statuses = []
    visitor = Visitor()

    async def attack(address: str) -> None:
        visitor.addresses.append(address)
        back = urlsplit(visitor.query["redirect_uri"])
        async with httpx2.AsyncClient(verify=False) as browser:
            targets = ("?code=evil&state=guess", "?code=evil", "/other?code=evil")
            statuses.extend([(await browser.get(f"{back.geturl()}{target}")).status_code for target in targets])
            statuses.append(
                (await browser.post(f"{back.geturl()}?code=evil&state={visitor.query['state']}")).status_code
            )
            _, writer = await asyncio.open_connection(back.hostname, back.port)
            writer.write(b"GET")
            writer.close()
            page = await browser.get(address, follow_redirects=True)
            assert page.headers["content-security-policy"].startswith("default-src 'none'")
            assert "The sign-in is complete." in page.text

    assert await greet(server, open_browser=attack) == "hello"
    assert statuses == [400] * 4
    assert [form["code"] for form in server.those("token")] == ["the-code"]


async def test_a_user_who_does_not_return_is_waited_for_as_long_as_agreed(server: Authorizing) -> None:
    with pytest.raises(SignInError, match=r"not signed in within 0\.1 s"):
        await greet(server, open_browser=lambda _: None, seconds=0.1)


async def test_a_port_that_is_in_use_is_replaced_and_the_client_registers_anew(
    server: Authorizing, tmp_path: Path
) -> None:
    file, visitor = tmp_path / "tokens.json", Visitor()
    await greet(server, open_browser=visitor, file=file)
    port = urlsplit(visitor.query["redirect_uri"]).port
    change(file, server.url, refresh_token=None)
    server.valid = set()
    taken = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", port)
    async with taken:
        await greet(server, open_browser=visitor, file=file)
    assert len(server.those("register")) == 2


async def test_the_browser_of_the_machine_is_opened_by_default(
    server: Authorizing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def go(address: str) -> bool:
        return httpx2.get(address, follow_redirects=True, verify=False).status_code == 200

    monkeypatch.setattr(webbrowser, "open", go)
    assert await greet(server) == "hello"
    server.valid = set()
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    with pytest.raises(SignInError, match="No browser could be opened"):
        await greet(server)


def test_a_sign_in_and_an_authorization_header_exclude_each_other() -> None:
    endpoint = HTTPEndpoint("http://127.0.0.1:1/mcp", {"Authorization": "Bearer x"}, sign_in=SignIn())
    with pytest.raises(ValueError, match="Authorization header"):
        Client(endpoint)


def test_secrets_are_not_shown() -> None:
    assert "hidden" not in repr(SignIn(client_id="a", client_secret="hidden"))
