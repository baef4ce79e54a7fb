"""The sign-in sample asked by hand: what its authorization server refuses, and tokens that are not for the orders."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import httpx2
import pytest

from samples.signin.grants import Agreement, Client, OAuth
from samples.signin.settings import READ, SCOPES, WRITE
from tests.clients.signing_in import BACK, SignIn, agree, serve_sign_in
from tests.patience import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

VERIFIER = "v" * 43
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
OTHER = "http://127.0.0.1:1/mcp"
"""Another server that gets tokens of the same issuer."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SignIn]:
    with serve_sign_in(tmp_path_factory.mktemp("orders") / "orders.db", others=[OTHER]) as found:
        yield found


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=PATIENCE) as client:
        yield client


async def registered(served: SignIn, http: httpx2.AsyncClient, **more: Any) -> dict[str, Any]:
    about = {
        "redirect_uris": [BACK],
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "none",
    }
    answer = await http.post(f"{served.issuer}/register", json={**about, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def asking(served: SignIn, client: dict[str, Any], **more: str | None) -> str:
    """Return where a browser asks for a code; None takes a parameter away."""
    usual: dict[str, str | None] = {
        "response_type": "code",
        "client_id": client["client_id"],
        "redirect_uri": BACK,
        "state": "s",
        "scope": READ,
        "resource": served.url,
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
    }
    wanted = {name: value for name, value in {**usual, **more}.items() if value is not None}
    return f"{served.issuer}/authorize?{urlencode(wanted)}"


async def tokens(served: SignIn, http: httpx2.AsyncClient, client: dict[str, Any], **said: str) -> httpx2.Response:
    usual = {"client_id": client["client_id"], "redirect_uri": BACK, "grant_type": "authorization_code"}
    return await http.post(f"{served.issuer}/token", data={**usual, "code_verifier": VERIFIER, **said})


async def signed_in(served: SignIn, http: httpx2.AsyncClient, *, user: str = "ada", **more: str) -> str:
    """Return an access token."""
    client = await registered(served, http)
    came = await agree(asking(served, client, **more), user=user)
    answer = await tokens(served, http, client, code=came["code"])
    found: str = answer.json()["access_token"]
    return found


async def call(served: SignIn, http: httpx2.AsyncClient, token: str, tool: str = "search_menu") -> httpx2.Response:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "_meta": meta}}
    headers = {
        "authorization": f"Bearer {token}",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
    }
    return await http.post(served.url, json=message, headers=headers)


# Tokens at the orders server


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_token_is_good_for_what_it_was_made_for(served: SignIn, http: httpx2.AsyncClient) -> None:
    answer = await call(served, http, await signed_in(served, http))
    assert answer.status_code == 200
    assert "Margherita" in answer.text


async def test_a_token_for_another_server_of_the_same_issuer_is_none_here(
    served: SignIn, http: httpx2.AsyncClient
) -> None:
    answer = await call(served, http, await signed_in(served, http, resource=OTHER))
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


async def test_a_token_that_may_only_write_reads_nothing(served: SignIn, http: httpx2.AsyncClient) -> None:
    token = await signed_in(served, http, scope=WRITE)
    for tool in ("search_menu", "create_order", "no_such_tool"):
        answer = await call(served, http, token, tool)
        assert answer.status_code == 403
        assert answer.json()["error"]["data"]["requiredScopes"][0] == READ


async def test_a_token_that_somebody_signed_in_the_issuers_name_is_none_here(
    served: SignIn, http: httpx2.AsyncClient
) -> None:
    impostor = OAuth(served.issuer, {served.url: SCOPES}, "RS256")
    user = Agreement("app", "ada", READ, served.url, BACK, CHALLENGE)
    client = Client("app", "secret", "app", (BACK,), "none", ("authorization_code",))
    token = impostor.generate_token("authorization_code", client, user, READ)["access_token"]
    answer = await call(served, http, token)
    assert answer.status_code == 401
    assert "The signature" in answer.headers["www-authenticate"]


# What the authorization server refuses


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"scope": "orders.admin"}, "invalid_scope"),
        ({"resource": None}, "invalid_target"),
        ({"resource": "https://elsewhere.example.com/mcp"}, "invalid_target"),
        ({"response_type": "token"}, "unsupported_response_type"),
    ],
)
async def test_a_request_that_nobody_should_be_asked_about_goes_back_with_an_error(
    served: SignIn, http: httpx2.AsyncClient, wrong: dict[str, str | None], error: str
) -> None:
    """RFC 6749 section 4.1.2.1, RFC 9207: and it says whose answer it is."""
    answer = await http.get(asking(served, await registered(served, http), **wrong))
    assert answer.status_code == 302
    came = httpx2.URL(answer.headers["location"])
    assert str(came).startswith(f"{BACK}?")
    assert (came.params["error"], came.params["state"], came.params["iss"]) == (error, "s", served.issuer)
    assert "code" not in came.params


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("register", b'{"redirect_uris": [1]}'),
        ("register", b'{"redirect_uris": ["http://127.0.0.1:1/"], "scope": 5}'),
        ("register", b"[]"),
        ("consent", b"x" * 100_000),
    ],
)
async def test_bad_bytes_are_a_bad_request(served: SignIn, http: httpx2.AsyncClient, path: str, body: bytes) -> None:
    answer = await http.post(f"{served.issuer}/{path}", content=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    "wrong", [{"redirect_uri": "https://evil.example.com/"}, {"redirect_uri": f"{BACK}/more"}, {"client_id": "nobody"}]
)
async def test_a_browser_is_sent_nowhere_that_was_not_registered(
    served: SignIn, http: httpx2.AsyncClient, wrong: dict[str, str | None]
) -> None:
    answer = await http.get(asking(served, await registered(served, http), **wrong))
    assert answer.status_code == 400
    assert "location" not in answer.headers


async def test_a_parameter_that_comes_twice_is_400(served: SignIn, http: httpx2.AsyncClient) -> None:
    twice = asking(served, await registered(served, http)) + "&scope=orders.write"
    assert (await http.get(twice)).status_code == 400


async def test_the_page_says_names_of_clients_as_text(served: SignIn, http: httpx2.AsyncClient) -> None:
    page = await http.get(asking(served, await registered(served, http, client_name="<script>alert(1)</script>")))
    assert "&lt;script&gt;" in page.text
    assert "<script" not in page.text
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]


async def test_a_code_is_good_once_and_for_who_asked(served: SignIn, http: httpx2.AsyncClient) -> None:
    client, other = await registered(served, http), await registered(served, http)
    for wrong, error in (
        ({"code_verifier": "w" * 43}, "invalid_grant"),
        ({"redirect_uri": f"{BACK}/more"}, "invalid_grant"),
        ({"resource": OTHER}, "invalid_target"),
        ({"client_id": other["client_id"]}, "invalid_grant"),
    ):
        code = (await agree(asking(served, client)))["code"]
        answer = await tokens(served, http, client, code=code, **wrong)
        assert (answer.status_code, answer.json()["error"]) == (400, error)
        again = await tokens(served, http, client, code=code)
        assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    code = (await agree(asking(served, client)))["code"]
    assert (await tokens(served, http, client, code=code)).status_code == 200
    assert (await tokens(served, http, client, code=code)).status_code == 400


async def test_a_refresh_token_is_good_once_and_gives_no_more_than_was_agreed(
    served: SignIn, http: httpx2.AsyncClient
) -> None:
    client = await registered(served, http)
    came = await agree(asking(served, client))
    first = (await tokens(served, http, client, code=came["code"])).json()["refresh_token"]
    again = await tokens(served, http, client, grant_type="refresh_token", refresh_token=first)
    assert again.json()["scope"] == READ
    assert (await tokens(served, http, client, grant_type="refresh_token", refresh_token=first)).status_code == 400
    second = again.json()["refresh_token"]
    more = await tokens(served, http, client, grant_type="refresh_token", refresh_token=second, scope=" ".join(SCOPES))
    assert more.json()["error"] == "invalid_scope"


async def test_a_client_with_a_secret_has_to_say_it(served: SignIn, http: httpx2.AsyncClient) -> None:
    client = await registered(served, http, token_endpoint_auth_method="client_secret_post")
    code = (await agree(asking(served, client)))["code"]
    for said in ({}, {"client_secret": "guessed"}):
        assert (await tokens(served, http, client, code=code, **said)).json()["error"] == "invalid_client"
    assert (await tokens(served, http, client, code=code, client_secret=client["client_secret"])).status_code == 200


async def test_a_page_is_answered_once(served: SignIn, http: httpx2.AsyncClient) -> None:
    answer = await http.post(f"{served.issuer}/consent", data={"ticket": "guessed", "decision": "allow"})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("sent", "error"),
    [(b"{", "invalid_request"), (b"[]", "invalid_request"), (b'{"client_name": "x"}', "invalid_request"),
     (b'{"redirect_uris": ["http://127.0.0.1:1/"], "grant_types": ["password"]}', "invalid_client_metadata")],
)  # fmt: skip
async def test_a_registration_that_makes_no_sense_is_400(
    served: SignIn, http: httpx2.AsyncClient, sent: bytes, error: str
) -> None:
    answer = await http.post(f"{served.issuer}/register", content=sent)
    assert (answer.status_code, answer.json()["error"]) == (400, error)
