"""Attacks on the sign-in of a proxy, each named by what the attacker tries.

Sources: MCP security best practices ("Confused Deputy Problem", "Token Passthrough"), RFC 9700 section 4, RFC 6819, and
published advisories of other proxies (CVE-2026-27124, CVE-2025-69196, GHSA-6x8h-498w-gv8c).
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from funcmcp._auth.authenticator import Challenge
from funcmcp._auth.principal import Principal
from funcmcp._oauth_proxy import sign_in, token_endpoint
from funcmcp._oauth_proxy.client_documents import ClientDocuments, DocumentError
from funcmcp._oauth_proxy.clients import OAuthClient
from funcmcp._oauth_proxy.failures import INVALID_GRANT, PROVIDER_REFUSED
from funcmcp._oauth_proxy.upstream import UpstreamUnavailableError, User
from funcmcp.auth import OAuthProxy
from funcmcp.state import KeyRing
from tests.auth.making_tokens import ISSUER as OTHER_ISSUER
from tests.auth.making_tokens import claims, sign
from tests.oauth_proxy.stage import (
    BACK,
    ISSUER,
    KEYS,
    LOGIN,
    SCOPES,
    URL,
    VERIFIER,
    Browser,
    Stage,
    challenge_of,
    claims_of,
)

if TYPE_CHECKING:
    from tests.oauth_proxy.stage import Answer


@pytest.fixture
async def stage() -> Stage:
    return await Stage().with_client()


def assert_refused_on_a_page(answer: Answer, status: int = 400) -> None:
    assert answer.is_page
    assert answer.status == status
    assert answer.header("location") is None
    assert answer.header("x-frame-options") == "DENY"
    assert answer.cookies == []


def assert_redirected_with(answer: Answer, error: str, uri: str = BACK) -> None:
    assert answer.status in {302, 303}
    assert answer.location.startswith(f"{uri}?")
    assert (answer.query["error"], answer.query["iss"]) == (error, ISSUER)
    assert "code" not in answer.query


async def assert_invalid_grant(answer: Answer) -> None:
    assert (answer.status, answer.json["error"]) == (400, "invalid_grant")
    # One text for all reasons of the proxy, and one for all of the identity provider.
    assert answer.json["error_description"] in {INVALID_GRANT.user, PROVIDER_REFUSED.user}
    assert answer.header("cache-control") == "no-store"


# Redirect URIs


async def test_a_foreign_redirect_uri_is_never_visited(stage: Stage) -> None:
    assert_refused_on_a_page(await stage.authorize(redirect_uri="https://evil.example/back"))


@pytest.mark.parametrize(
    "uri",
    [
        f"{BACK}#fragment",
        f"{BACK}/",
        f"{BACK}?more=1",
        f"{BACK}/../evil",
        f"{BACK}%2f..%2fevil",
        "https://app.example.com/%62ack",
        "https://app.example.com/BACK",
        "https://APP.example.com/back",
        "HTTPS://app.example.com/back",
        "https://app.example.com./back",
        "https://app.example.com:443/back",
        "https://app.example.com:8443/back",
        "https://user@app.example.com/back",
        "https://app.example.com@evil.example/back",
        "https://app.example.com\\@evil.example/back",
        "https://app.example.com%2eevil.example/back",
        "https://app.example.com.evil.example/back",
        "https://аpp.example.com/back",  # a Cyrillic letter
        "http://app.example.com/back",
        "//app.example.com/back",
        "/back",
        f" {BACK}",
        f"{BACK}\n",
        f"{BACK}\r\nset-cookie: a=b",
    ],
)
async def test_an_address_that_only_resembles_a_registered_one_is_never_visited(stage: Stage, uri: str) -> None:
    assert_refused_on_a_page(await stage.authorize(redirect_uri=uri))


@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java\tscript:alert(1)",
        "java\nscript:alert(1)",
        "\x01javascript:alert(1)",
        " javascript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "vbscript:x",
        "file:///etc/passwd",
        "blob:https://app.example.com/1",
        "about:blank",
        "mailto:ada@example.com",
        "view-source:https://app.example.com",
        "ms-msdt:/id",
        "ms-appinstaller:?source=https://evil.example/a.msix",
        "itms-services://?action=download-manifest&url=https://evil.example/m.plist",
        "applescript://com.apple.scripteditor?action=new",
        "search:query=x",
        "urn:ietf:wg:oauth:2.0:oob",
    ],
)
async def test_an_address_that_runs_code_is_not_registered(uri: str) -> None:
    answer = await Stage().register(redirect_uris=[BACK, uri])
    assert (answer.status, answer.json["error"]) == (400, "invalid_redirect_uri")


@pytest.mark.parametrize(
    "uri",
    [
        "http://localhost.evil.example/back",
        "http://127.0.0.1.evil.example/back",
        "http://127.0.0.1@evil.example/back",
        "http://0.0.0.0/back",
        "http://127.1/back",
        "http://2130706433/back",
        "http://0x7f.0.0.1/back",
        "http://[::ffff:127.0.0.1]/back",
        "http://[::]/back",
        "http://localhost./back",
        "http://LOCALHOST/back",
        "http://10.0.0.1/back",
        "http://app.example.com/back",
    ],
)
async def test_a_host_that_only_resembles_the_users_machine_is_not_registered(uri: str) -> None:
    answer = await Stage().register(redirect_uris=[uri])
    assert (answer.status, answer.json["error"]) == (400, "invalid_redirect_uri")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
async def test_a_program_on_the_users_machine_chooses_its_port_and_nothing_else(host: str) -> None:
    stage = await Stage().with_client(redirect_uris=[f"http://{host}/back"])
    assert (await stage.authorize(redirect_uri=f"http://{host}:51234/back")).status == 200
    assert (await stage.authorize(redirect_uri=f"http://{host}/back")).status == 200
    refused = [
        f"http://{host}:51234/other",
        f"http://{host}:51234/back?to=evil",
        f"http://{host}:51234/back#a",
        f"http://{host}:99999/back",
        f"http://{host}:/back",
        f"http://{host}:1@evil.example/back",
        f"https://{host}:51234/back",
        "http://evil.example:51234/back",
    ]
    for uri in refused:
        assert_refused_on_a_page(await stage.authorize(redirect_uri=uri))


@pytest.mark.parametrize(
    ("registered", "requested"),
    [("http://localhost:3030", "http://localhost:3030/"), ("http://127.0.0.1/", "http://127.0.0.1:51234")],
)
async def test_a_loopback_address_without_a_path_is_the_one_with_a_slash(registered: str, requested: str) -> None:
    stage = await Stage().with_client(redirect_uris=[registered])
    assert (await stage.authorize(redirect_uri=requested)).status == 200
    assert_refused_on_a_page(await stage.authorize(redirect_uri=f"{requested.removesuffix('/')}?to=evil"))


async def test_another_loopback_host_than_the_registered_one_is_refused() -> None:
    stage = await Stage().with_client(redirect_uris=["http://127.0.0.1/back"])
    assert_refused_on_a_page(await stage.authorize(redirect_uri="http://localhost:1/back"))


async def test_a_missing_redirect_uri_is_the_only_registered_one_or_refused() -> None:
    stage = await Stage().with_client()
    assert (await stage.authorize(redirect_uri=None)).status == 200
    await stage.with_client(redirect_uris=[BACK, f"{BACK}/2"])
    assert_refused_on_a_page(await stage.authorize(redirect_uri=None))


@pytest.mark.parametrize(
    "changes",
    [
        {"response_type": "token"},
        {"scope": "unknown"},
        {"code_challenge": None},
        {"resource": "https://evil.example"},
        {"prompt": "none"},
    ],
)
async def test_an_error_is_never_sent_to_an_address_that_is_not_registered(
    stage: Stage, changes: dict[str, Any]
) -> None:
    assert_refused_on_a_page(await stage.authorize(redirect_uri="https://evil.example/back", **changes))


# Clients


@pytest.mark.parametrize("client_id", [None, "unknown", "1.e30.AAAA", "x" * 5000])
async def test_an_unknown_client_is_refused_on_a_page(stage: Stage, client_id: str | None) -> None:
    answer = await stage.authorize(client_id=client_id)
    assert_refused_on_a_page(answer)
    assert "Remove Orders from your application and add it again." in answer.text


async def test_a_client_of_another_server_with_the_same_keys_is_unknown(stage: Stage) -> None:
    stage.proxy = stage.instance(url="https://menu.example.com/mcp")
    assert_refused_on_a_page(await stage.authorize(resource="https://menu.example.com/mcp"))


DOCUMENT = "https://claude.ai/oauth/claude-code-client-metadata"


class Documents(ClientDocuments):
    """The document of a client that everybody knows, without its host.

    Attributes:
        client_of_url: The client, or why its document is not usable.
        requests: How often the document was needed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.client_of_url: OAuthClient | DocumentError = OAuthClient(
            DOCUMENT, "Claude Code", ("http://localhost/callback",), refreshes=True, host="claude.ai"
        )
        self.requests = 0

    async def client(self, url: str) -> OAuthClient:
        self.requests += 1
        if isinstance(self.client_of_url, DocumentError):
            raise self.client_of_url
        return self.client_of_url


LOCAL = "http://localhost:5000/callback"


def with_documents() -> tuple[Stage, Documents]:
    stage, documents = Stage(), Documents()
    stage.client_id = DOCUMENT
    object.__setattr__(stage.proxy._settings, "documents", documents)
    return stage, documents


async def test_a_client_that_everybody_knows_is_asked_about_each_time() -> None:
    """GHSA-6x8h-498w-gv8c: a malicious server in the middle rides on a consent that was given before."""
    stage, _ = with_documents()
    browser = Browser()
    for _time in range(2):
        page = await stage.authorize(browser, redirect_uri=LOCAL)
        assert page.status == 200
        assert "Allow" in page.text
        assert "claude.ai" in page.text
        assert "localhost:5000" in page.text
        await stage.consent(page, browser)
    assert len(stage.upstream.requests) == 2


async def test_a_client_with_a_document_signs_in_and_its_document_is_not_needed_for_its_tokens() -> None:
    stage, documents = with_documents()
    code = await stage.code(redirect_uri=LOCAL)
    documents.client_of_url = DocumentError("gone")
    answer = await stage.exchange(code, redirect_uri=LOCAL)
    assert answer.status == 200
    assert claims_of(answer.json["access_token"])["client_id"] == DOCUMENT
    assert (await stage.refresh(answer.json["refresh_token"])).status == 200
    assert documents.requests == 1


async def test_a_document_that_changes_during_a_sign_in_changes_nothing() -> None:
    stage, documents = with_documents()
    browser = Browser()
    page = await stage.authorize(browser, redirect_uri=LOCAL)
    documents.client_of_url = OAuthClient(
        DOCUMENT, "Evil", ("https://evil.example/",), refreshes=True, host="claude.ai"
    )
    upstream = await stage.consent(page, browser)
    back = await stage.callback(stage.upstream.sign_in(upstream.location), browser)
    assert back.location.startswith(LOCAL)


async def test_the_page_shows_the_whole_host_of_a_document_and_not_only_its_name() -> None:
    stage, documents = with_documents()
    host = "claude.ai.user-content.example"
    documents.client_of_url = OAuthClient(DOCUMENT, "Claude", ("https://evil.example/back",), refreshes=True, host=host)
    page = await stage.authorize(redirect_uri="https://evil.example/back")
    assert f"An application of <strong>{host}</strong>" in page.text
    assert "<strong>evil.example</strong>" in page.text


async def test_a_document_that_is_not_usable_is_a_page_with_the_reason() -> None:
    stage, documents = with_documents()
    documents.client_of_url = DocumentError("The host of the description is not public.")
    answer = await stage.authorize(redirect_uri=LOCAL)
    assert_refused_on_a_page(answer)
    assert "The host of the description is not public." in answer.text


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1/client.json", "http://evil.example/client.json", "https://a.b/../c"]
)
async def test_the_url_of_a_document_does_not_make_the_server_ask_its_own_network(stage: Stage, url: str) -> None:
    assert_refused_on_a_page(await stage.authorize(client_id=url))


async def test_documents_can_be_switched_off() -> None:
    stage = Stage(client_documents=False)
    stage.client_id = DOCUMENT
    answer = await stage.authorize(redirect_uri=LOCAL)
    assert_refused_on_a_page(answer)
    assert "does not know your application" in answer.text
    assert (await stage.exchange("code")).json["error"] == "invalid_client"
    metadata = (await stage.send("GET", "/.well-known/oauth-authorization-server")).json
    assert metadata["client_id_metadata_document_supported"] is False


async def test_the_code_of_a_client_with_a_document_is_worth_nothing_for_another_one() -> None:
    stage, _ = with_documents()
    code = await stage.code(redirect_uri=LOCAL)
    other = "https://evil.example/client.json"
    await assert_invalid_grant(await stage.exchange(code, redirect_uri=LOCAL, client_id=other))
    await stage.with_client(redirect_uris=["http://localhost/callback"])
    await assert_invalid_grant(await stage.exchange(code, redirect_uri=LOCAL))


async def test_a_client_id_with_a_flipped_bit_is_unknown(stage: Stage) -> None:
    client_id = stage.client_id
    for place in range(0, len(client_id), 7):
        flipped = client_id[:place] + chr(ord(client_id[place]) ^ 1) + client_id[place + 1 :]
        assert (await stage.exchange("code", client_id=flipped)).json["error"] == "invalid_client"
        stage.caller = f"192.0.2.{place % 250}"


async def test_a_client_of_an_older_key_is_known_while_the_key_is_in_the_ring(stage: Stage) -> None:
    stage.proxy = stage.instance(KeyRing([b"the next key" * 4, b"the key of the tests" * 2]))
    assert (await stage.authorize()).status == 200
    stage.proxy = stage.instance(KeyRing([b"the next key" * 4]))
    assert_refused_on_a_page(await stage.authorize())


async def test_a_name_with_html_is_text(stage: Stage) -> None:
    name = "<script>alert(1)</script>\" onload='x' & <img src=x onerror=alert(1)>"
    await stage.with_client(client_name=name)
    page = (await stage.authorize()).text
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload=&#x27;x&#x27; &amp;" in page


async def test_a_name_with_hidden_or_reversing_characters_or_without_end_is_cut_to_one_line(stage: Stage) -> None:
    await stage.with_client(client_name="Claude\u202e\u200b\x00\n\ndetac\u2066" + "x" * 10_000)
    page = (await stage.authorize()).text
    assert "Claude detac x" in page
    assert "x" * 101 not in page
    assert not set("\u202e\u200b\x00\u2066").intersection(page)


@pytest.mark.parametrize("name", [None, "", " \u200b ", 5, ["Claude"]])
async def test_a_client_without_a_readable_name_is_called_nothing(stage: Stage, name: object) -> None:
    await stage.with_client(client_name=name)
    assert "An application without a name" in (await stage.authorize()).text


async def test_a_registration_does_not_get_the_secret_or_the_id_at_the_identity_provider(stage: Stage) -> None:
    answer = await stage.register(token_endpoint_auth_method="client_secret_post", client_id="x", client_secret="y")
    assert answer.status == 201
    assert answer.json["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in answer.json


async def test_a_flood_of_registrations_is_stopped_and_leaves_nothing_in_memory(stage: Stage) -> None:
    statuses = [(await stage.register()).status for _ in range(30)]
    assert statuses.count(201) == 19  # the client of the stage was the first of 20
    assert set(statuses) == {201, 429}
    stage.caller = "192.0.2.2"
    assert (await stage.register()).status == 201
    assert not [value for value in vars(stage.proxy).values() if isinstance(value, dict | list | set)]


async def test_a_flood_of_sign_ins_is_stopped(stage: Stage) -> None:
    statuses = [(await stage.authorize()).status for _ in range(61)]
    assert (statuses[:60], statuses[60]) == ([200] * 60, 429)


async def test_guesses_of_codes_are_stopped(stage: Stage) -> None:
    answers = [await stage.exchange(f"guess-{number}") for number in range(31)]
    assert {answer.status for answer in answers[:30]} == {400}
    assert (answers[30].status, answers[30].header("retry-after")) == (429, "2")


# The authorization request


@pytest.mark.parametrize(
    "changes",
    [
        {"code_challenge": None, "code_challenge_method": None},
        {"code_challenge_method": None},
        {"code_challenge_method": "plain"},
        {"code_challenge_method": "s256"},
        {"code_challenge": "short"},
        {"code_challenge": "x" * 44},
        {"code_challenge": "+" * 43},
        {"code_challenge": challenge_of(VERIFIER) + "="},
    ],
)
async def test_pkce_can_not_be_left_out_or_weakened(stage: Stage, changes: dict[str, Any]) -> None:
    assert_redirected_with(await stage.authorize(**changes), "invalid_request")


@pytest.mark.parametrize(
    "verifier", [None, "", challenge_of(VERIFIER), "short", VERIFIER[:-1], VERIFIER + "a", "x" * 200, "ü" * 50]
)
async def test_a_code_can_not_be_redeemed_without_its_verifier(stage: Stage, verifier: str | None) -> None:
    code = await stage.code()
    await assert_invalid_grant(await stage.exchange(code, code_verifier=verifier))
    assert stage.upstream.exchanges == []


async def test_a_wrong_verifier_does_not_use_up_the_code(stage: Stage) -> None:
    code = await stage.code()
    await assert_invalid_grant(await stage.exchange(code, code_verifier="x" * 43))
    assert (await stage.exchange(code)).status == 200


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "state", "scope", "code_challenge", "response_type"])
async def test_a_repeated_parameter_is_refused_on_a_page(stage: Stage, name: str) -> None:
    query = urlencode([*stage.request().items(), (name, "other")])
    assert_refused_on_a_page(await stage.send("GET", "/oauth/authorize", query))


async def test_parameters_that_are_too_long_or_not_utf_8_are_refused_on_a_page(stage: Stage) -> None:
    assert_refused_on_a_page(await stage.authorize(login_hint="x" * 9000))
    query = urlencode(stage.request()) + "&hint=%ff"
    assert_refused_on_a_page(await stage.send("GET", "/oauth/authorize", query))
    query = "&".join(f"a{number}=1" for number in range(200))
    assert_refused_on_a_page(await stage.send("GET", "/oauth/authorize", query))


@pytest.mark.parametrize(
    "resource",
    [
        "https://evil.example/mcp",
        ISSUER,
        f"{URL}/other",
        f"{URL}#a",
        "https://orders.example.com/MCP",
        f"{URL}//",
        "mcp",
        "https://orders.example.com@evil.example/mcp",
        "https://orders.example.com:8443/mcp",
        f"{URL}/../other?x=/mcp",
        "http://orders.example.com/mcp",
        "https://orders.example.com./mcp",
        "https://orders.example.com/%6dc%",
    ],
)
async def test_a_token_for_another_resource_can_not_be_requested(stage: Stage, resource: str) -> None:
    assert_redirected_with(await stage.authorize(resource=resource), "invalid_target")
    code = await stage.code()
    answer = await stage.exchange(code, resource=resource)
    assert (answer.status, answer.json["error"]) == (400, "invalid_target")
    assert stage.upstream.exchanges == []


async def test_two_resources_are_refused(stage: Stage) -> None:
    query = urlencode([*stage.request().items(), ("resource", URL)])
    assert_redirected_with(await stage.send("GET", "/oauth/authorize", query), "invalid_target")
    form = urlencode([("client_id", stage.client_id), ("resource", URL), ("resource", URL)]).encode()
    headers = {"content-type": "application/x-www-form-urlencoded"}
    answer = await stage.send("POST", "/oauth/token", body=form, headers=headers)
    assert (answer.status, answer.json["error"]) == (400, "invalid_target")


@pytest.mark.parametrize(
    "resource", [URL, f"{URL}/", "HTTPS://ORDERS.example.com/mcp", f"{URL}?region=eu", f"{URL}/?region=eu", None]
)
async def test_the_token_is_for_the_endpoint_exactly(stage: Stage, resource: str | None) -> None:
    tokens = await stage.tokens(resource=resource)
    assert claims_of(tokens["access_token"])["aud"] == URL


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"prompt": "none"}, "interaction_required"),
        ({"request": "eyJ"}, "request_not_supported"),
        ({"request_uri": "https://evil.example/request"}, "request_uri_not_supported"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"response_mode": "form_post"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code id_token"}, "unsupported_response_type"),
        ({"response_type": None}, "unsupported_response_type"),
        ({"scope": "orders.read admin"}, "invalid_scope"),
        ({"state": "x" * 3000}, "invalid_request"),
    ],
)
async def test_the_consent_of_the_user_can_not_be_left_out(stage: Stage, changes: dict[str, Any], error: str) -> None:
    assert_redirected_with(await stage.authorize(**changes), error)
    assert stage.upstream.requests == []


async def test_max_age_and_other_hints_change_nothing(stage: Stage) -> None:
    answer = await stage.authorize(
        max_age="0", login_hint="eve@example.com", prompt="login", acr_values="x", id_token_hint="y"
    )
    assert answer.status == 200
    assert "eve@example.com" not in answer.text


async def test_line_breaks_in_the_state_start_no_header(stage: Stage) -> None:
    browser = Browser()
    state = "a\r\nset-cookie: evil=1\r\n\r\n<script>"
    page = await stage.authorize(browser, state=state)
    denied = await stage.consent(page, browser, decision="deny")
    assert "\r" not in denied.location
    assert "\n" not in denied.location
    assert denied.query["state"] == state


# The consent page


async def test_the_page_can_not_be_framed_runs_no_script_and_loads_nothing(stage: Stage) -> None:
    page = await stage.authorize()
    policy = page.header("content-security-policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "form-action" not in policy
    assert page.header("x-frame-options") == "DENY"
    assert page.header("cache-control") == "no-store"
    assert page.header("x-content-type-options") == "nosniff"
    assert page.header("cross-origin-opener-policy") == "same-origin"
    assert page.header("referrer-policy") == "same-origin"
    assert "<script" not in page.text
    assert " style=" not in page.text


async def test_the_page_shows_what_the_user_decides_about(stage: Stage) -> None:
    page = await stage.authorize(scope="orders.read orders.write offline_access openid")
    for text in ("Notes", "Orders", "app.example.com", "Example Login", *SCOPES.values()):
        assert text in page.text
    assert "Place and cancel orders" not in (await stage.authorize()).text


async def test_the_page_warns_of_programs_on_the_users_machine() -> None:
    stage = await Stage().with_client(redirect_uris=["http://localhost/back"])
    page = await stage.authorize(redirect_uri="http://localhost:5000/back")
    assert "localhost:5000" in page.text
    assert "Any program on it can use this name" in page.text


async def test_nothing_is_sent_to_the_identity_provider_before_the_consent(stage: Stage) -> None:
    browser = Browser()
    await stage.authorize(browser)
    assert stage.upstream.requests == []
    assert not [name for name in browser.cookies if "-go-" in name]


@pytest.mark.parametrize(
    "origin", [None, "null", "https://evil.example", "http://orders.example.com", f"{ISSUER}:8443"]
)
async def test_a_form_of_another_page_does_not_consent(stage: Stage, origin: str | None) -> None:
    browser = Browser()
    page = await stage.authorize(browser)
    assert_refused_on_a_page(await stage.consent(page, browser, origin=origin), 403)
    assert stage.upstream.requests == []


async def test_a_navigation_that_the_browser_calls_cross_site_does_not_consent(stage: Stage) -> None:
    browser = Browser()
    page = await stage.authorize(browser)
    form = urlencode(page.form | {"decision": "allow"}).encode()
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "origin": ISSUER,
        "sec-fetch-site": "cross-site",
    }
    answer = await stage.send("POST", "/oauth/consent", body=form, headers=headers, browser=browser)
    assert_refused_on_a_page(answer, 403)


async def test_the_attackers_page_is_worthless_in_the_browser_of_the_victim(stage: Stage) -> None:
    page = await stage.authorize(Browser())
    victim = Browser()
    assert_refused_on_a_page(await stage.consent(page, victim), 403)
    await stage.authorize(victim)  # the victim has a page of its own open
    assert_refused_on_a_page(await stage.consent(page, victim), 403)


async def test_a_form_without_its_token_or_with_that_of_another_page_does_not_consent(stage: Stage) -> None:
    browser = Browser()
    page, other = await stage.authorize(browser), await stage.authorize(browser)
    assert_refused_on_a_page(await stage.consent(page, browser, token=""), 403)
    assert_refused_on_a_page(await stage.consent(page, browser, token=other.form["token"]), 403)
    assert (await stage.consent(page, browser)).status == 303


async def test_no_decision_is_no_consent(stage: Stage) -> None:
    browser = Browser()
    page = await stage.authorize(browser)
    assert_redirected_with(await stage.consent(page, browser, decision="perhaps"), "access_denied")
    assert stage.upstream.requests == []


async def test_a_page_is_valid_for_ten_minutes(stage: Stage) -> None:
    browser = Browser()
    page = await stage.authorize(browser)
    stage.clock.now += 601
    assert_refused_on_a_page(await stage.consent(page, browser))


async def test_consenting_twice_starts_nothing_for_somebody_else(stage: Stage) -> None:
    browser = Browser()
    page = await stage.authorize(browser)
    cookies = dict(browser.cookies)
    first = await stage.consent(page, browser)
    assert_refused_on_a_page(await stage.consent(page, browser), 403)  # the cookie of the page is gone
    browser.cookies |= cookies
    second = await stage.consent(page, browser)
    assert first.location != second.location
    assert (await stage.callback(stage.upstream.sign_in(second.location), browser)).status == 302


async def test_a_hundred_open_pages_leave_eight_cookies_of_which_the_newest_works(stage: Stage) -> None:
    browser = Browser()
    pages = []
    for number in range(100):
        stage.caller = f"192.0.2.{number}"
        stage.clock.now += 1
        pages.append(await stage.authorize(browser))
    assert len(browser.cookies) == 8
    assert len(browser.header["cookie"]) < 1000
    assert (await stage.consent(pages[-1], browser)).status == 303
    assert_refused_on_a_page(await stage.consent(pages[0], browser), 403)


async def test_a_cookie_that_another_host_of_the_domain_has_set_does_not_count(stage: Stage) -> None:
    """Browsers refuse the prefix ``__Host-`` to other hosts; and of two cookies with one name, neither counts."""
    browser = Browser()
    page = await stage.authorize(browser)
    ((name, value),) = browser.cookies.items()
    assert name.startswith("__Host-oauth-ask-")
    form = urlencode(page.form | {"decision": "allow"}).encode()
    headers = {
        "content-type": "application/x-www-form-urlencoded",
        "origin": ISSUER,
        "cookie": f"{name}=planted; {name}={value}",
    }
    assert_refused_on_a_page(await stage.send("POST", "/oauth/consent", body=form, headers=headers), 403)
    unprefixed = headers | {"cookie": f"{name.removeprefix('__Host-')}={value}"}
    assert_refused_on_a_page(await stage.send("POST", "/oauth/consent", body=form, headers=unprefixed), 403)


# The callback


async def test_a_victim_who_follows_the_attackers_link_to_the_identity_provider_gives_away_no_code(
    stage: Stage,
) -> None:
    """CVE-2026-27124: the attacker consents, and sends the URL of the identity provider to the victim."""
    attacker, victim = Browser(), Browser()
    page = await stage.authorize(attacker)
    upstream = await stage.consent(page, attacker)
    back = stage.upstream.sign_in(upstream.location, User("victim"))
    assert_refused_on_a_page(await stage.callback(back, victim), 403)
    other = await stage.authorize(victim)
    await stage.consent(other, victim)  # the victim has a sign-in of its own under way
    assert_refused_on_a_page(await stage.callback(back, victim), 403)


@pytest.mark.parametrize("state", [None, "", "forged", "c1.AAAA", "1.e30.AAAA"])
async def test_a_forged_or_missing_state_is_refused(stage: Stage, state: str | None) -> None:
    query = {"code": "code"} | ({} if state is None else {"state": state})
    assert_refused_on_a_page(await stage.callback(query, Browser()))


async def test_an_old_state_is_refused(stage: Stage) -> None:
    browser = Browser()
    upstream = await stage.consent(await stage.authorize(browser), browser)
    back = stage.upstream.sign_in(upstream.location)
    stage.clock.now += 601
    assert_refused_on_a_page(await stage.callback(back, browser))


async def test_a_state_is_worth_nothing_after_the_callback(stage: Stage) -> None:
    browser = Browser()
    upstream = await stage.consent(await stage.authorize(browser), browser)
    back = stage.upstream.sign_in(upstream.location)
    assert (await stage.callback(back, browser)).status == 302
    assert_refused_on_a_page(await stage.callback(back, browser), 403)


async def test_the_code_of_one_sign_in_is_worth_nothing_with_the_state_of_another_one(stage: Stage) -> None:
    browser = Browser()
    first = await stage.consent(await stage.authorize(browser), browser)
    second = await stage.consent(await stage.authorize(browser), browser)
    injected = stage.upstream.sign_in(first.location)["code"]
    state = stage.upstream.sign_in(second.location)["state"]
    back = await stage.callback({"code": injected, "state": state}, browser)
    await assert_invalid_grant(await stage.exchange(back.query["code"]))


async def test_an_answer_of_another_identity_provider_is_refused(stage: Stage) -> None:
    browser = Browser()
    upstream = await stage.consent(await stage.authorize(browser), browser)
    back = stage.upstream.sign_in(upstream.location)
    assert_refused_on_a_page(await stage.callback(back | {"iss": "https://evil.example"}, browser), 403)
    assert_refused_on_a_page(await stage.callback(back | {"iss": f"{LOGIN}/"}, browser), 403)
    stage.upstream.sends_issuer = True
    assert_refused_on_a_page(await stage.callback(back, browser), 403)
    assert (await stage.callback(back | {"iss": LOGIN}, browser)).status == 302


async def test_the_text_of_the_identity_provider_does_not_reach_the_client(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    for error, expected in (
        ("access_denied", "access_denied"),
        ("server_error", "server_error"),
        ("x", "server_error"),
    ):
        browser = Browser()
        upstream = await stage.consent(await stage.authorize(browser), browser)
        state = stage.upstream.sign_in(upstream.location)["state"]
        query = {"error": error, "error_description": "AADSTS1 <b>\r\nforged line", "state": state}
        answer = await stage.callback(query, browser)
        assert_redirected_with(answer, expected)
        assert "AADSTS" not in answer.location
        assert "forged" not in answer.location
    assert "AADSTS1 <b>" in caplog.text
    assert "\nforged line" not in caplog.text


async def test_an_injected_code_of_the_identity_provider_is_worth_nothing(stage: Stage) -> None:
    """The code of a victim's sign-in at another client of the identity provider has another verifier."""
    browser, victim = Browser(), Browser()
    mine = await stage.consent(await stage.authorize(browser), browser)
    theirs = await stage.consent(await stage.authorize(victim), victim)
    stolen = stage.upstream.sign_in(theirs.location, User("victim"))["code"]
    state = stage.upstream.sign_in(mine.location)["state"]
    back = await stage.callback({"code": stolen, "state": state}, browser)
    await assert_invalid_grant(await stage.exchange(back.query["code"]))


# Codes and tokens


async def test_a_code_works_once(stage: Stage) -> None:
    code = await stage.code()
    assert (await stage.exchange(code)).status == 200
    await assert_invalid_grant(await stage.exchange(code))


async def test_of_a_hundred_redemptions_at_once_one_succeeds(stage: Stage) -> None:
    code = await stage.code()
    statuses = [answer.status for answer in await asyncio.gather(*(stage.exchange(code) for _ in range(100)))]
    assert statuses.count(200) == 1
    assert set(statuses) <= {200, 400, 429}


async def test_a_code_is_valid_for_a_minute(stage: Stage) -> None:
    code = await stage.code()
    stage.clock.now += 60
    await assert_invalid_grant(await stage.exchange(code))
    assert stage.upstream.exchanges == []


async def test_a_code_is_worth_nothing_for_another_client_or_another_address(stage: Stage) -> None:
    code, client_id = await stage.code(), stage.client_id
    await stage.with_client(client_name="Another")
    await assert_invalid_grant(await stage.exchange(code))
    stage.client_id = client_id
    await assert_invalid_grant(await stage.exchange(code, redirect_uri=f"{BACK}2"))
    assert stage.upstream.exchanges == []
    assert (await stage.exchange(code)).status == 200


async def test_a_refresh_token_is_worth_nothing_for_another_client(stage: Stage) -> None:
    refresh_token = (await stage.tokens())["refresh_token"]
    await stage.with_client(client_name="Another")
    await assert_invalid_grant(await stage.refresh(refresh_token))
    assert stage.upstream.refreshes == []


async def test_a_refresh_gives_no_more_scopes_than_the_user_has_granted(stage: Stage) -> None:
    refresh_token = (await stage.tokens(scope="orders.read"))["refresh_token"]
    answer = await stage.refresh(refresh_token, scope="orders.read orders.write")
    assert (answer.status, answer.json["error"]) == (400, "invalid_scope")
    assert stage.upstream.refreshes == []


async def test_a_refresh_with_fewer_scopes_keeps_the_granted_ones(stage: Stage) -> None:
    tokens = await stage.tokens(scope="orders.read orders.write")
    narrow = (await stage.refresh(tokens["refresh_token"], scope="orders.write")).json
    assert narrow["scope"] == "orders.write"
    assert claims_of(narrow["access_token"])["scope"] == "orders.write"
    assert (await stage.refresh(narrow["refresh_token"])).json["scope"] == "orders.read orders.write"


async def test_a_disabled_account_ends_at_the_next_refresh(stage: Stage) -> None:
    tokens = await stage.tokens()
    renewed = (await stage.refresh(tokens["refresh_token"])).json
    stage.upstream.ended |= {stage.upstream.refreshes[0]}
    await assert_invalid_grant(await stage.refresh(renewed["refresh_token"]))
    await assert_invalid_grant(await stage.refresh(tokens["refresh_token"]))


async def test_an_old_refresh_token_is_refused_where_the_identity_provider_rotates(stage: Stage) -> None:
    stage.upstream.rotates = True
    tokens = await stage.tokens()
    renewed = (await stage.refresh(tokens["refresh_token"])).json
    await assert_invalid_grant(await stage.refresh(tokens["refresh_token"]))
    assert (await stage.refresh(renewed["refresh_token"])).status == 200


async def test_without_a_store_a_sign_in_is_renewed_for_a_day_at_most(stage: Stage) -> None:
    refresh_token = (await stage.tokens())["refresh_token"]
    for _hour in range(23):
        stage.clock.now += 3600
        refresh_token = (await stage.refresh(refresh_token)).json["refresh_token"]
    stage.clock.now += 3600
    await assert_invalid_grant(await stage.refresh(refresh_token))


async def test_no_text_of_the_proxy_stands_for_another_one(stage: Stage) -> None:
    browser = Browser()
    page = await stage.authorize(browser)
    upstream = await stage.consent(page, browser)
    back = stage.upstream.sign_in(upstream.location)
    tokens = await stage.tokens()
    texts = {
        "client id": stage.client_id,
        "transaction": page.form["transaction"],
        "state": back["state"],
        "code": await stage.code(),
        "refresh token": tokens["refresh_token"],
        "access token": tokens["access_token"],
    }
    for kind, text in texts.items():
        stage.caller = kind
        if kind != "client id":
            assert (await stage.exchange("code", client_id=text)).json["error"] == "invalid_client"
        if kind != "transaction":
            assert_refused_on_a_page(await stage.consent(page, browser, transaction=text))
        if kind != "state":
            assert_refused_on_a_page(await stage.callback({"code": "code", "state": text}, browser))
        if kind != "code":
            await assert_invalid_grant(await stage.exchange(text))
        if kind != "refresh token":
            await assert_invalid_grant(await stage.refresh(text))
        if kind != "access token":
            assert isinstance(await stage.caller_of(text), Challenge)
    assert isinstance(await stage.caller_of(texts["access token"]), Principal)


async def test_a_token_of_another_server_with_the_same_keys_is_refused(stage: Stage) -> None:
    menu = await Stage().with_client()
    menu.proxy = menu.instance(url="https://orders.example.com/menu")
    token = (await stage.tokens())["access_token"]
    assert isinstance(await menu.caller_of(token), Challenge)


async def test_a_token_of_the_identity_provider_is_refused(stage: Stage) -> None:
    assert isinstance(await stage.caller_of(sign(claims(aud=URL))), Challenge)
    assert isinstance(await stage.caller_of(sign(claims(aud=URL, iss=ISSUER))), Challenge)
    assert OTHER_ISSUER == LOGIN


async def test_a_token_in_the_query_is_not_read(stage: Stage) -> None:
    await stage.tokens()
    assert list(inspect.signature(stage.proxy.__call__).parameters) == ["headers"]
    assert await stage.proxy({}) is None


async def test_an_access_token_expires(stage: Stage) -> None:
    token = (await stage.tokens())["access_token"]
    stage.clock.now += 3600 + 59
    assert isinstance(await stage.caller_of(token), Principal)
    stage.clock.now += 2
    assert isinstance(await stage.caller_of(token), Challenge)


async def test_a_clock_that_is_five_minutes_off_is_not_forgiven(stage: Stage) -> None:
    token = (await stage.tokens())["access_token"]
    stage.clock.now += 3600 + 300
    assert isinstance(await stage.caller_of(token), Challenge)


async def test_the_token_of_another_client_can_not_be_revoked(stage: Stage) -> None:
    refresh_token = (await stage.tokens())["refresh_token"]
    mine = stage.client_id
    await stage.with_client(client_name="Another")
    answer = await revoke(stage, refresh_token)
    assert (answer.status, answer.json) == (200, {})
    stage.client_id = mine
    assert (await stage.refresh(refresh_token)).status == 200
    assert (await revoke(stage, refresh_token)).status == 200
    await assert_invalid_grant(await stage.refresh(refresh_token))


async def revoke(stage: Stage, token: str) -> Answer:
    form = urlencode({"token": token, "client_id": stage.client_id}).encode()
    headers = {"content-type": "application/x-www-form-urlencoded"}
    return await stage.send("POST", "/oauth/revoke", body=form, headers=headers)


# Addresses, logs, keys, instances


async def test_no_header_of_a_request_changes_an_address(stage: Stage) -> None:
    headers = {"host": "evil.example", "x-forwarded-host": "evil.example", "forwarded": "host=evil.example"}
    for path in ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"):
        answer = await stage.send("GET", path, headers=headers)
        assert "evil.example" not in answer.text
        assert answer.json["issuer"] == ISSUER
    page = await stage.send("GET", "/oauth/authorize", stage.request(), headers=headers)
    assert "evil.example" not in page.text


async def test_secrets_and_compared_values_are_compared_in_constant_time() -> None:
    for module in (sign_in, token_endpoint):
        assert "hmac.compare_digest" in inspect.getsource(module)
    assert "compare_digest" in inspect.getsource(sign_in._equal)
    assert "_equal" in inspect.getsource(sign_in._is_bound)
    assert "compare_digest" in inspect.getsource(token_endpoint._fits)


async def test_the_log_has_no_secrets(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    browser = Browser()
    page = await stage.authorize(browser)
    cookies = list(browser.cookies.values())
    upstream = await stage.consent(page, browser)
    cookies += browser.cookies.values()
    back = stage.upstream.sign_in(upstream.location)
    code = (await stage.callback(back, browser)).query["code"]
    tokens = (await stage.exchange(code)).json
    await stage.exchange(code)
    renewed = (await stage.refresh(tokens["refresh_token"])).json
    stage.upstream.down = UpstreamUnavailableError("status 500")
    await stage.refresh(renewed["refresh_token"])
    secrets = [
        stage.client_id,
        "the client's state",
        VERIFIER,
        code,
        *page.form.values(),
        *cookies,
        *back.values(),
        *stage.upstream.refreshes,
        *(
            value
            for answer in (tokens, renewed)
            for value in answer.values()
            if "." in str(value) and value != "orders.read"
        ),
    ]
    assert not [secret for secret in secrets if str(secret) in caplog.text]
    for event in ("registered", "asked", "allowed", "returned", "issued", "refreshed", "upstream_failed"):
        assert f"event=oauth_{event}" in caplog.text or event == "registered"


@pytest.mark.parametrize("step", range(5))
async def test_a_key_can_be_rotated_and_the_instance_changed_at_each_step(step: int) -> None:
    stage = await Stage().with_client()
    rotated = KeyRing([b"the next key" * 4, b"the key of the tests" * 2])

    def change(at: int) -> None:
        stage.proxy = stage.instance(rotated if at >= step else KEYS)

    browser = Browser()
    change(0)
    page = await stage.authorize(browser)
    change(1)
    upstream = await stage.consent(page, browser)
    change(2)
    back = await stage.callback(stage.upstream.sign_in(upstream.location), browser)
    change(3)
    tokens = (await stage.exchange(back.query["code"])).json
    change(4)
    renewed = (await stage.refresh(tokens["refresh_token"])).json
    for token in (tokens["access_token"], renewed["access_token"]):
        assert isinstance(await stage.caller_of(token), Principal)
    assert len((await stage.send("GET", "/oauth/keys")).json["keys"]) == 2


async def test_after_the_old_key_is_removed_nothing_of_it_is_accepted(stage: Stage) -> None:
    tokens = await stage.tokens()
    stage.proxy = stage.instance(KeyRing([b"the next key" * 4]))
    assert isinstance(await stage.caller_of(tokens["access_token"]), Challenge)
    assert (await stage.refresh(tokens["refresh_token"])).json["error"] == "invalid_client"


async def test_a_step_up_shows_all_scopes_that_the_new_token_has(stage: Stage) -> None:
    """The challenge of the server names the scopes that the caller holds together with those that it lacks."""
    await stage.tokens(scope="orders.read")
    page = await stage.authorize(scope="orders.read orders.write")
    assert [sentence in page.text for sentence in SCOPES.values()] == [True, True]
    tokens = await stage.tokens(scope="orders.read orders.write")
    assert tokens["scope"] == "orders.read orders.write"


async def test_an_outage_of_the_identity_provider_signs_nobody_out(stage: Stage) -> None:
    code, refresh_token = await stage.code(), (await stage.tokens())["refresh_token"]
    stage.upstream.down = UpstreamUnavailableError("status 502")
    for answer in (await stage.exchange(code), await stage.refresh(refresh_token)):
        assert (answer.status, answer.json["error"]) == (503, "temporarily_unavailable")
        assert answer.header("retry-after") == "5"
    browser = Browser()
    assert_redirected_with(await stage.consent(await stage.authorize(browser), browser), "temporarily_unavailable")
    stage.upstream.down = None
    assert (await stage.exchange(code)).status == 200
    assert (await stage.refresh(refresh_token)).status == 200


async def test_a_user_without_rights_gets_no_token() -> None:
    stage = await Stage(allow=lambda user: user.tenant == "kitchen").with_client()
    assert "access_token" in await stage.tokens()
    stage.upstream.user = User("eve", tenant="elsewhere")
    answer = await stage.exchange(await stage.code())
    assert (answer.status, answer.json["error"]) == (400, "invalid_grant")


def test_a_proxy_can_not_be_configured_for_a_url_that_the_network_can_change() -> None:
    for url in (
        "http://orders.example.com/mcp",
        "https://orders.example.com:443/mcp",
        "https://Orders.example.com/mcp",
    ):
        with pytest.raises(ValueError, match="URL of an OAuthProxy"):
            OAuthProxy(url, upstream=Stage().upstream, scopes=SCOPES)
