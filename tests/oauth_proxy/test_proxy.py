"""The proxy as a whole: its configuration, its metadata, its place in `Auth`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from urllib.parse import urlencode

import pytest

from funcmcp._auth.authenticator import parts_of
from funcmcp._auth.principal import Principal
from funcmcp._oauth_proxy.web import MAX_BODY
from funcmcp.auth import (
    APIKeys,
    Auth,
    BearerTokens,
    OAuthProxy,
    ProtectedResource,
    StaticKeys,
    TokenRules,
    User,
    first_of,
)
from funcmcp.state import MemorySignIns
from tests.oauth_proxy.stage import BACK, ISSUER, KEYS, SCOPES, URL, ScriptedUpstream, Stage, claims_of

if TYPE_CHECKING:
    from collections.abc import Iterable


def proxy(url: str = URL, **options: Any) -> OAuthProxy:
    defaults: dict[str, Any] = {"upstream": ScriptedUpstream(), "scopes": SCOPES, "keys": KEYS}
    return OAuthProxy(url, **defaults | options)


@pytest.mark.parametrize("path", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"])
async def test_the_metadata_have_what_clients_look_for(path: str) -> None:
    answer = await Stage().send("GET", path)
    assert (answer.status, answer.header("access-control-allow-origin")) == (200, "*")
    openid = {
        "userinfo_endpoint": f"{ISSUER}/oauth/userinfo",
        "claims_supported": ["sub", "name", "email", "email_verified"],
        "scopes_supported": ["openid", "email", "profile", "orders.read", "orders.write"],
    }
    methods = ["none", "client_secret_basic", "client_secret_post"]
    document = {
        "issuer": ISSUER,
        "authorization_endpoint": f"{ISSUER}/oauth/authorize",
        "token_endpoint": f"{ISSUER}/oauth/token",
        "registration_endpoint": f"{ISSUER}/oauth/register",
        "revocation_endpoint": f"{ISSUER}/oauth/revoke",
        "jwks_uri": f"{ISSUER}/oauth/keys",
        "scopes_supported": ["orders.read", "orders.write"],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    assert answer.json == (document | openid if "openid" in path else document)


async def test_a_registration_is_answered_with_all_registered_values() -> None:
    answer = await Stage().register(application_type="web", token_endpoint_auth_method="client_secret_basic")
    assert answer.status == 201
    assert {name: value for name, value in answer.json.items() if name != "client_id"} == {
        "client_id_issued_at": 1_800_000_000,
        "client_name": "Notes",
        "redirect_uris": [BACK],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "web",
    }
    assert len(answer.json["client_id"]) < 200


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        ({"redirect_uris": None}, "invalid_redirect_uri"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": [5]}, "invalid_redirect_uri"),
        ({"redirect_uris": BACK}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"{BACK}{number}" for number in range(17)]}, "invalid_redirect_uri"),
        ({"redirect_uris": [BACK + "x" * 2048]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://localhost/back"], "application_type": "web"}, "invalid_redirect_uri"),
        ({"redirect_uris": ["cursor://back"], "application_type": "web"}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https:///back"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://app.example.com/../back"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://app.example.com/%2e%2e/back"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [f"{BACK}#fragment"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://user@app.example.com/back"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://app.example.com:99999/"]}, "invalid_redirect_uri"),
        ({"grant_types": ["implicit"]}, "invalid_client_metadata"),
        ({"grant_types": "authorization_code"}, "invalid_client_metadata"),
        ({"response_types": ["token"]}, "invalid_client_metadata"),
    ],
)
async def test_a_registration_that_is_not_allowed_is_refused(metadata: dict[str, Any], error: str) -> None:
    answer = await Stage().register(**metadata)
    assert (answer.status, answer.json["error"]) == (400, error)


@pytest.mark.parametrize("uri", ["cursor://anysphere.cursor-mcp/oauth/callback", "com.example.app:/back", "vscode://x"])
async def test_an_application_can_have_a_scheme_of_its_own(uri: str) -> None:
    stage = await Stage().with_client(redirect_uris=[uri])
    page = await stage.authorize(redirect_uri=uri)
    assert f"<strong>{uri.partition(':')[0]}:</strong>" in page.text
    assert (await stage.exchange(await stage.code(redirect_uri=uri), redirect_uri=uri)).status == 200


@pytest.mark.parametrize("body", [b"", b"[]", b"text", b"\xff", b'{"redirect_uris":'])
async def test_a_registration_that_is_not_an_object_is_refused(body: bytes) -> None:
    answer = await Stage().send("POST", "/oauth/register", body=body)
    assert (answer.status, answer.json["error"]) == (400, "invalid_client_metadata")


async def test_the_principal_is_the_user_at_the_identity_provider() -> None:
    stage = await Stage().with_client()
    tokens = await stage.tokens()
    assert {name: value for name, value in tokens.items() if "token" not in name} == {
        "expires_in": 3600,
        "scope": "orders.read",
    }
    principal = await stage.caller_of(tokens["access_token"])
    assert isinstance(principal, Principal)
    assert (principal.subject, principal.issuer, principal.name) == ("ada", ISSUER, "Ada")
    assert principal.scopes == {"orders.read"}
    assert principal.roles == {"cook"}
    assert (principal.claims["email"], principal.claims["tid"]) == ("ada@example.com", "kitchen")
    assert principal.client_id == claims_of(tokens["access_token"])["client_id"]
    renewed = (await stage.refresh(tokens["refresh_token"])).json
    assert (await stage.caller_of(renewed["access_token"])).key == principal.key


async def test_a_client_that_registers_no_refresh_tokens_gets_none() -> None:
    stage = await Stage().with_client(grant_types=["authorization_code"])
    assert "refresh_token" not in await stage.tokens()


async def test_a_client_that_names_no_grant_types_gets_refresh_tokens() -> None:
    stage = await Stage().with_client(grant_types=None)
    assert (await stage.register(grant_types=None)).json["grant_types"] == ["authorization_code", "refresh_token"]
    assert "refresh_token" in await stage.tokens()


async def test_refresh_tokens_can_be_switched_off() -> None:
    stage = await Stage(refresh_seconds=0).with_client()
    assert "refresh_token" not in await stage.tokens()


async def test_without_a_refresh_token_of_the_upstream_there_is_none() -> None:
    stage = await Stage().with_client()
    stage.upstream.gives_refresh_tokens = False
    assert "refresh_token" not in await stage.tokens()


async def test_a_client_that_names_no_scopes_requests_all_of_them() -> None:
    stage = await Stage().with_client()
    assert (await stage.tokens(scope=None))["scope"] == "orders.read orders.write"
    assert (await stage.tokens(scope="openid offline_access"))["scope"] == "orders.read orders.write"


async def allow_reading(user: User) -> Iterable[str]:
    return ["orders.read", "unknown"]


@pytest.mark.parametrize(
    ("allow", "scope"),
    [
        (lambda user: True, "orders.read orders.write"),
        (lambda user: {"orders.write"}, "orders.write"),
        (allow_reading, "orders.read"),
        (lambda user: False, None),
        (lambda user: [], None),
        (lambda user: ["unknown"], None),
    ],
)
async def test_a_function_decides_which_users_may_sign_in(allow: Any, scope: str | None) -> None:
    stage = await Stage(allow=allow).with_client()
    answer = await stage.exchange(await stage.code(scope="orders.read orders.write"))
    assert answer.json.get("scope") == scope
    assert answer.json.get("error") == (None if scope else "invalid_grant")


@pytest.mark.parametrize("decision", ["orders.read", None, 5, [None]])
async def test_a_text_a_number_or_nothing_is_not_a_decision(decision: Any, caplog: pytest.LogCaptureFixture) -> None:
    stage = await Stage(allow=lambda user: decision).with_client()
    assert (await stage.exchange(await stage.code())).status == 503
    reason = "A scope is a string" if isinstance(decision, list) else f"list of scopes, not {type(decision).__name__}"
    assert reason in caplog.text


async def test_a_refresh_token_that_a_request_can_not_have_is_not_issued(caplog: pytest.LogCaptureFixture) -> None:
    stage = await Stage().with_client(client_name="n" * 100, redirect_uris=[BACK + "x" * 2000])
    for characters, is_issued in ((7000, True), (8000, False)):
        with patch.object(stage.upstream, "_new_refresh_token", return_value="r" * characters):
            answer = await stage.exchange(await stage.code(redirect_uri=None), redirect_uri=None)
        tokens = answer.json
        assert ("refresh_token" in tokens) is is_issued
        form = {"refresh_token": tokens.get("refresh_token", ""), "client_id": stage.client_id, "resource": URL}
        assert len(urlencode(form)) + 200 < MAX_BODY
    assert "event=oauth_refresh_token_too_long" in caplog.text


async def test_a_state_that_would_not_fit_the_form_is_refused_at_once() -> None:
    stage = await Stage().with_client()
    answer = await stage.authorize(state="\0" * 2000)
    assert answer.query["error"] == "invalid_request"


async def test_the_function_decides_again_if_a_refresh_says_more_about_the_user() -> None:
    stage = await Stage(allow=lambda user: "cook" in user.roles).with_client()
    stage.upstream.rotates = True
    tokens = await stage.tokens()
    stage.upstream.user = User("ada")
    answer = await stage.refresh(tokens["refresh_token"])
    assert (answer.status, answer.json["error"]) == (400, "invalid_grant")


async def test_a_revocation_says_what_it_can_not_do() -> None:
    stage = await Stage().with_client()
    tokens = await stage.tokens()
    headers = {"content-type": "application/x-www-form-urlencoded"}
    form = f"client_id={stage.client_id}&token="
    for token in ("", "unknown"):
        answer = await stage.send("POST", "/oauth/revoke", body=f"{form}{token}".encode(), headers=headers)
        assert (answer.status, answer.json) == (200, {})
    answer = await stage.send("POST", "/oauth/revoke", body=f"{form}{tokens['access_token']}".encode(), headers=headers)
    assert (answer.status, answer.json["error"]) == (400, "unsupported_token_type")
    stage.upstream.revokes = False
    answer = await stage.send(
        "POST", "/oauth/revoke", body=f"{form}{tokens['refresh_token']}".encode(), headers=headers
    )
    assert (answer.status, answer.json["error"]) == (400, "unsupported_token_type")
    answer = await stage.send("POST", "/oauth/revoke", body=b"token=x", headers=headers)
    assert (answer.status, answer.json["error"]) == (401, "invalid_client")


@pytest.mark.parametrize(
    ("content_type", "fields", "error"),
    [
        ("application/json", {"grant_type": "authorization_code"}, "invalid_request"),
        ("", {}, "invalid_request"),
        ("application/x-www-form-urlencoded", {"grant_type": None}, "invalid_request"),
        ("application/x-www-form-urlencoded; charset=UTF-8", {"grant_type": "password"}, "unsupported_grant_type"),
    ],
)
async def test_a_malformed_token_request_is_refused(content_type: str, fields: dict[str, Any], error: str) -> None:
    stage = await Stage().with_client()
    answer = await stage.token(content_type, client_id=stage.client_id, **fields)
    assert (answer.status, answer.json["error"]) == (400, error)


async def test_an_unknown_client_is_told_to_register_again_and_the_log_says_once_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    for client_id in ("unknown", "another\nERROR forged"):
        answer = await stage.exchange("code", client_id=client_id)
        assert (answer.status, answer.json["error"]) == (401, "invalid_client")
    [warning] = [record for record in caplog.records if record.levelname == "WARNING"]
    assert "If FUNCMCP_KEYS has changed, clients register again" in warning.getMessage()


async def test_a_repeated_or_undecodable_field_is_refused() -> None:
    stage = await Stage().with_client()
    headers = {"content-type": "application/x-www-form-urlencoded"}
    for body in (b"client_id=a&client_id=a", b"client_id=\xff", b"client_id=%ff"):
        answer = await stage.send("POST", "/oauth/token", body=body, headers=headers)
        assert (answer.status, answer.json["error"]) == (400, "invalid_request")


@pytest.mark.parametrize("path", ["/oauth/register", "/oauth/token", "/oauth/revoke", "/oauth/keys"])
async def test_pages_of_every_origin_may_use_the_endpoints_for_clients(path: str) -> None:
    answer = await Stage().send("OPTIONS", path, headers={"origin": "https://inspector.example"})
    assert (answer.status, answer.header("access-control-allow-origin")) == (204, "*")
    assert answer.header("access-control-allow-credentials") is None


@pytest.mark.parametrize("path", ["/oauth/authorize", "/oauth/consent", "/oauth/callback"])
async def test_pages_of_other_origins_can_not_read_the_endpoints_for_browsers(path: str) -> None:
    for method in ("OPTIONS", "PUT"):
        answer = await Stage().send(method, path, headers={"origin": "https://evil.example"})
        assert (answer.status, answer.header("access-control-allow-origin")) == (405, None)
        assert answer.is_page


@pytest.mark.parametrize("path", ["/oauth/token", "/oauth/register", "/oauth/keys"])
async def test_another_method_is_refused(path: str) -> None:
    answer = await Stage().send("DELETE", path)
    assert (answer.status, answer.header("allow")) == (405, "GET, HEAD" if path == "/oauth/keys" else "POST")


async def test_the_published_keys_check_the_tokens() -> None:
    stage = await Stage().with_client()
    token = (await stage.tokens())["access_token"]
    keys = (await stage.send("GET", "/oauth/keys")).json
    assert all("d" not in key for key in keys["keys"])
    rules = TokenRules(algorithms=["ES256"])
    gateway = BearerTokens(ISSUER, URL, keys=StaticKeys(keys), rules=rules, clock=stage.clock)
    assert isinstance(await gateway({"authorization": f"Bearer {token}"}), Principal)


async def test_a_verified_token_is_recalled() -> None:
    stage = await Stage().with_client()
    token = (await stage.tokens())["access_token"]
    principal = await stage.caller_of(token)
    from hashlib import sha256

    assert stage.proxy.recall(sha256(f"Bearer {token}".encode()).digest()) is principal


def test_auth_publishes_the_metadata_of_the_proxy() -> None:
    keys = APIKeys({"night-job": "a-key-of-the-tests"})
    for authenticator in (proxy(), first_of(proxy(), keys), first_of(keys, first_of(proxy()))):
        resource = Auth(authenticator).resource
        assert resource is not None
        assert (resource.resource, resource.authorization_servers) == (URL, [ISSUER])
        assert resource.scopes == ["orders.read", "orders.write"]
    assert Auth(first_of(keys)).resource is None
    assert len(parts_of(first_of(keys, first_of(proxy(), keys)))) == 3


def test_auth_refuses_metadata_that_lead_elsewhere() -> None:
    right = ProtectedResource(resource=URL, authorization_servers=["https://login.example.com", ISSUER])
    assert Auth(proxy(), right).resource is right
    for resource, server in ((URL, "https://login.example.com"), (f"{URL}/2", ISSUER)):
        with pytest.raises(ValueError, match=r"Auth\.resource must have the resource"):
            Auth(proxy(), ProtectedResource(resource=resource, authorization_servers=[server]))
    with pytest.raises(ValueError, match="several proxies"):
        Auth(first_of(proxy(), proxy("https://menu.example.com/mcp")))


async def test_the_endpoints_can_be_below_a_path_of_the_host() -> None:
    issuer = f"{ISSUER}/team/orders"
    stage = Stage()
    stage.proxy = stage.instance(url=f"{issuer}/mcp", issuer=f"{issuer}/")
    assert stage.proxy.callback == f"{issuer}/oauth/callback"
    documents = [path for path in stage.proxy.paths if "/.well-known/" in path]
    assert documents == [
        "/.well-known/oauth-authorization-server/team/orders",
        "/.well-known/openid-configuration/team/orders",
        "/team/orders/.well-known/openid-configuration",
    ]
    for path in documents:
        document = (await stage.send("GET", path)).json
        assert (document["issuer"], document["token_endpoint"]) == (issuer, f"{issuer}/oauth/token")
    assert stage.proxy.resource.authorization_servers == [issuer]
    assert (await stage.send("POST", "/team/orders/oauth/token")).status == 400


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            {"issuer": "https://orders.example.com/other"},
            r"must be the beginning of the URL, such as 'https://orders\.example\.com'; got",
        ),
        ({"issuer": "https://orders.example.com.evil.example"}, "must be the beginning of the URL"),
        ({"issuer": "https:"}, "must be the beginning of the URL"),
        ({"url": "https://orders.example.com/a/../mcp", "issuer": "https://orders.example.com/a/.."}, "letters"),
        ({"url": "https://orders.example.com/%61/mcp", "issuer": "https://orders.example.com/%61"}, "letters"),
        ({"url": "orders.example.com"}, "absolute"),
        ({"url": "https://orders.example.com/mcp?a=1"}, "query"),
        ({"url": "https://orders.example.com/mcp#a"}, "fragment"),
        ({"scopes": {}}, "at least one scope"),
        ({"scopes": {"orders read": "See"}}, "not a scope"),
        ({"scopes": {"orders.read": " "}}, "needs a sentence"),
        ({"scopes": {"offline_access": "See"}}, "OpenID Connect"),
        ({"access_seconds": 0}, "access_seconds"),
        ({"access_seconds": 90_000}, "access_seconds"),
        ({"refresh_seconds": -1}, "refresh_seconds"),
        ({"refresh_seconds": 90_000}, "86400, or up to 90 days with a store"),
        ({"refresh_seconds": 91 * 86_400, "store": MemorySignIns()}, "between 0 and 7776000"),
    ],
)
def test_an_invalid_configuration_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        proxy(**options)


def test_scopes_need_sentences() -> None:
    with pytest.raises(TypeError, match="a sentence for each scope"):
        proxy(scopes=["orders.read"])


def test_the_url_of_a_provider_is_not_an_upstream() -> None:
    with pytest.raises(TypeError, match=r"such as OIDC\(issuer, client_id, client_secret\), not str"):
        proxy(upstream="https://login.example.com")


def test_a_slash_at_the_end_of_the_url_is_not_published() -> None:
    assert proxy(f"{URL}/").resource.resource == URL
    assert proxy("https://orders.example.com/").callback == f"{ISSUER}/oauth/callback"


def test_a_proxy_on_this_machine_needs_no_https() -> None:
    assert proxy("http://127.0.0.1:8000/mcp").callback == "http://127.0.0.1:8000/oauth/callback"


async def test_an_upstream_without_a_check_has_nothing_to_look_at(caplog: pytest.LogCaptureFixture) -> None:
    await Stage().proxy.check()
    assert caplog.records == []
