"""Tools that need a grant of their user at another service."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import Auth, Context, MCPServer
from funcmcp._grants import tool_grants
from funcmcp._grants.accounts import NEVER_SECONDS
from funcmcp._grants.tool_grants import ProviderClient, ToolGrants, owner_of_user
from funcmcp._serving.composition import runtime_of
from funcmcp._state.sessions.store import StoreUnavailableError
from funcmcp.auth import APIKeys, Grant, GrantProvider, Principal, ProtectedResource, UpstreamTokenError
from funcmcp.client import Client
from tests.auth.making_tokens import NOW
from tests.grants.desk import SITE, Desk, Service, provider
from tests.oauth_proxy.stage import DOWN, ISSUER

if TYPE_CHECKING:
    from collections.abc import Mapping

RESOURCE = ProtectedResource(
    resource="https://desk.example.com/mcp", authorization_servers=["https://login.example.com"]
)
ANYBODY = APIKeys({"ada": "a-key-of-16-characters"})


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(monkeypatch)


async def test_a_user_is_asked_once_before_the_tool_runs(desk: Desk) -> None:
    browser = desk.browser()
    assert await desk.call(browser=browser) == "starred mcp"
    assert await desk.call() == "starred mcp"
    assert desk.received == ["token-1", "token-1"]
    (request,) = desk.authorizations
    assert request["scope"] == "repo"
    assert request["redirect_uri"] == f"{ISSUER}/grants/github/callback"
    assert "Github is connected" in browser.pages[-1].text
    (form,) = desk.service.forms
    assert form["grant_type"] == "authorization_code"
    assert desk.service.requests[0][2] == {"authorization": "Basic dGhlLWNsaWVudDp0aGUtc2VjcmV0"}


async def test_a_client_that_can_not_open_pages_gets_a_link_and_calls_again(desk: Desk) -> None:
    url = await desk.link()
    assert url.startswith(f"{ISSUER}/grants/github/connect?flow=")
    await desk.browser().connect(url)
    assert await desk.call(capabilities={}) == "starred mcp"


async def test_nobody_is_asked_for_a_call_that_can_not_run(desk: Desk) -> None:
    await desk.token()
    size = len(desk.store)
    assert "repository" in await desk.call("star", {"repo": "mcp"})
    assert len(desk.store) == size


async def test_a_tool_can_need_grants_of_several_services(desk: Desk) -> None:
    assert await desk.call("copy", browser=desk.browser()) == "copied"
    assert desk.received == ["token-1", "token-2"]
    assert [request["redirect_uri"].split("/")[4] for request in desk.authorizations] == ["github", "files"]


async def test_another_application_of_the_user_needs_no_question(desk: Desk) -> None:
    await desk.call(browser=desk.browser())
    await desk.stage.with_client(client_name="Another")
    desk._tokens.clear()
    assert await desk.call() == "starred mcp"
    assert len(desk.authorizations) == 1


# Scopes


async def test_scopes_are_added_step_by_step(desk: Desk) -> None:
    browser = desk.browser()
    await desk.call(browser=browser)
    assert await desk.call("read", {"scopes": ["gist"]}, browser=browser) == "read"
    assert await desk.call("read", {"scopes": ["gist", "repo"]}) == "read"
    assert [request["scope"] for request in desk.authorizations] == ["repo", "repo gist"]


@pytest.mark.parametrize("scope", ["gist", "gist,user", "gist user", ""])
async def test_a_scope_that_the_user_does_not_allow_is_not_taken_for_allowed(desk: Desk, scope: str) -> None:
    desk.service.scope = scope
    text = await desk.call(browser=desk.browser())
    if scope:
        assert text == "Github has not allowed: repo. Call the tool again to try it once more."
        assert desk.received == []
        desk.service.scope = "repo"
    assert await desk.call(browser=desk.browser()) == "starred mcp"


async def test_a_scope_that_includes_another_one_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch, includes={"all": ["repo", "gist"]}, scopes=["offline_access"])
    desk.service.scope = "all,offline_access"
    assert await desk.call(browser=desk.browser()) == "starred mcp"
    assert await desk.call("read", {"scopes": ["gist"]}) == "read"
    assert desk.authorizations[0]["scope"] == "offline_access repo"


async def test_an_account_with_too_many_scopes_is_asked_for_those_of_the_tool(desk: Desk) -> None:
    desk.service.scope = " ".join(["repo", *(f"scope-{number}" for number in range(200))])
    await desk.call(browser=desk.browser())
    desk.service.scope = None
    assert await desk.call("read", {"scopes": ["gist"]}, browser=desk.browser()) == "read"
    assert desk.authorizations[-1]["scope"] == "gist"


# Renewal and the end


async def test_a_token_is_renewed(desk: Desk) -> None:
    await desk.call(browser=desk.browser())
    desk.clock.now += 3600
    assert await desk.call() == "starred mcp"
    assert desk.service.forms[1] == {"grant_type": "refresh_token", "refresh_token": "refresh-1"}
    assert desk.received == ["token-1", "token-2"]


async def test_two_instances_renew_once(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    other = Desk(monkeypatch, store=desk.store, service=desk.service, clock=desk.clock)
    await desk.call(browser=desk.browser())
    desk.clock.now += 3600
    principal = Principal("ada", ISSUER)
    context: Any = type("FakeContext", (), {"principal": principal})
    tokens = [grants.token(context, Grant("github")) for grants in (desk.grants, other.grants) for _ in range(3)]
    assert set(await asyncio.gather(*tokens)) == {"token-2"}


async def test_a_user_whose_grant_was_revoked_is_asked_again_in_the_same_call(desk: Desk) -> None:
    browser = desk.browser()
    await desk.call(browser=browser)
    desk.clock.now += 3600
    desk.service.answers = [(400, {"error": "invalid_grant"})]
    assert await desk.call(browser=browser) == "starred mcp"
    assert len(desk.authorizations) == 2


class Eager:
    """A request of a client of 2025-11-25 whose user connects the account at once, for tokens that end at once."""

    def __init__(self, desk: Desk) -> None:
        self.principal = Principal("ada", ISSUER)
        self.client = self.revision = self
        self.capabilities: Mapping[str, Any] = {"elicitation": {"url": {}}}
        self.per_request = False
        self.time_limit = None
        self.notified: list[str] = []
        self._desk = desk

    async def ask(self, questions: Mapping[str, Any]) -> dict[str, Any]:
        for question in questions.values():
            await self._desk.browser().connect(question["params"]["url"])
        self._desk.service.answers = [(400, {"error": "invalid_grant"})]
        return {key: {"action": "accept"} for key in questions}

    async def notify(self, method: str, _params: Mapping[str, Any]) -> None:
        self.notified.append(method)


async def test_a_grant_that_is_refused_at_once_is_asked_for_twice_and_not_without_end(desk: Desk) -> None:
    desk.service.expires_in = 0
    context: Any = Eager(desk)
    with pytest.raises(UpstreamTokenError, match="Call again"):
        await desk.grants.token(context, Grant("github"))
    assert context.notified == ["notifications/elicitation/complete"] * 2


async def test_a_secret_that_the_service_repeats_is_not_in_the_log(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    await desk.call(browser=desk.browser())
    desk.clock.now += 3600
    text = "refresh-1 of the-secret is bad\nevent=forged"
    desk.service.answers = [(400, {"error": "invalid_grant", "error_description": text})]
    await desk.call(capabilities={})
    assert "*** of *** is bad" in caplog.text
    assert not [secret for secret in ("refresh-1", "the-secret", "\nevent=forged") if secret in caplog.text]


async def test_a_service_that_is_away_is_an_error_that_says_so(desk: Desk) -> None:
    await desk.call(browser=desk.browser())
    desk.clock.now += 3600
    desk.service.answers = [DOWN]
    assert "Github can't be reached" in await desk.call()
    desk.clock.now += 10
    assert await desk.call() == "starred mcp"
    assert len(desk.authorizations) == 1


async def test_a_service_that_does_not_accept_the_server_ends_no_account(desk: Desk) -> None:
    await desk.call(browser=desk.browser())
    desk.clock.now += 3600
    desk.service.answers = [(401, {"error": "invalid_client"})]
    assert "does not accept this server. The log of the server says why" in await desk.call()
    desk.clock.now += 10
    assert await desk.call() == "starred mcp"
    assert len(desk.authorizations) == 1


async def test_a_token_that_the_service_refuses_is_renewed(desk: Desk) -> None:
    await desk.call(browser=desk.browser())
    for refused in ("token-1", "token-1", "another"):
        assert await desk.call("read", {"scopes": [], "refused": refused}) == "read"
    assert desk.received == ["token-1", "token-2", "token-2", "token-2"]


async def test_a_refused_token_that_can_not_be_renewed_is_asked_for_again(desk: Desk) -> None:
    desk.service.refreshes, desk.service.expires_in = False, None
    browser = desk.browser()
    await desk.call(browser=browser)
    desk.clock.now += 60 * 86_400  # it does not expire
    assert await desk.call() == "starred mcp"
    assert await desk.call("read", {"scopes": [], "refused": "token-1"}, browser=browser) == "read"
    assert desk.received == ["token-1", "token-1", "token-2"]


async def test_a_refused_user_does_not_hide_that_the_service_refuses_the_server(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    await desk.call(browser=desk.browser())
    for error in ("invalid_grant", "invalid_client"):
        desk.clock.now += 3600
        desk.service.answers = [(400, {"error": error})]
        await desk.call(capabilities={})
        await desk.call(browser=desk.browser())
    levels = [record.levelno for record in caplog.records if "event=grant_failed" in record.getMessage()]
    assert levels == [logging.WARNING, logging.ERROR]


async def test_a_user_can_end_the_grant(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "funcmcp")
    await desk.call(browser=desk.browser())
    assert await desk.call("disconnect") == "true"
    assert desk.service.revoked == ["refresh-1"]
    assert await desk.call("disconnect") == "false"
    assert "event=grant_ended service=github" in caplog.text
    assert "Open https" in await desk.call(capabilities={})


@pytest.mark.parametrize("answer", [DOWN, (503, {}), (400, {"error": "unsupported_token_type"})])
async def test_a_grant_ends_here_if_the_service_can_not_end_it(desk: Desk, answer: Any) -> None:
    await desk.call(browser=desk.browser())
    desk.service.answers = [answer]
    assert await desk.call("disconnect") == "false"
    assert "Open https" in await desk.call(capabilities={})


@pytest.mark.parametrize(("status", "expected"), [(204, "true"), (404, "false")])
async def test_the_authorization_of_an_app_at_github_is_deleted(
    monkeypatch: pytest.MonkeyPatch, status: int, expected: str
) -> None:
    url = "https://api.example.com/applications/{client_id}/grant"
    desk = Desk(monkeypatch, revoke=url)
    await desk.call(browser=desk.browser())
    desk.service.answers = [(status, {})]
    assert await desk.call("disconnect") == expected
    method, requested, headers, _ = desk.service.requests[-1]
    assert (method, requested) == ("DELETE", "https://api.example.com/applications/the-client/grant")
    assert headers == {"authorization": "Basic dGhlLWNsaWVudDp0aGUtc2VjcmV0"}
    assert desk.service.bodies[-1] == {"access_token": "token-1"}


async def revoked(token: str) -> bool:
    return token == "token-1"


async def failing(token: str) -> bool:
    raise OSError(token)


@pytest.mark.parametrize(
    ("revoke", "expected"), [(revoked, "true"), (lambda token: token == "token-1", "true"), (failing, "false")]
)
async def test_a_function_can_revoke_a_token(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, revoke: Any, expected: str
) -> None:
    desk = Desk(monkeypatch, revoke=revoke)
    await desk.call(browser=desk.browser())
    assert await desk.call("disconnect") == expected
    assert desk.service.revoked == []
    assert "token-1" not in caplog.text
    assert "Open https" in await desk.call(capabilities={})


async def test_a_function_that_hangs_does_not_keep_a_user_signed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hangs(token: str) -> bool:
        await asyncio.sleep(600)
        return bool(token)

    monkeypatch.setattr(tool_grants, "_REVOKE_SECONDS", 0.01)
    desk = Desk(monkeypatch, revoke=hangs)
    await desk.call(browser=desk.browser())
    await desk.stage.proxy.sign_out("ada")
    assert "Open https" in await desk.call(capabilities={})


async def test_a_server_that_stops_waits_for_renewals(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch)
    waited: list[float] = []

    async def finish(seconds: float) -> None:
        waited.append(seconds)

    for accounts in desk.grants._accounts.values():
        monkeypatch.setattr(accounts, "finish", finish)
    await runtime_of(desk.mcp).aclose()
    assert len(waited) == 2
    assert min(waited) > 0


async def test_a_service_without_revocation_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(monkeypatch, revoke=None)
    await desk.call(browser=desk.browser())
    assert await desk.call("disconnect") == "false"
    assert desk.service.revoked == []


async def test_signing_out_ends_the_grants_of_the_user_and_of_no_other(desk: Desk) -> None:
    for name in ("ada", "eve"):
        await desk.call("copy", name=name, browser=desk.browser(name))
    await desk.stage.proxy.sign_out("ada")
    assert desk.service.revoked == ["refresh-1", "refresh-2"]
    assert "Open https" in await desk.call(capabilities={})
    assert await desk.call("copy", name="eve") == "copied"


# Callers, stores and configurations


@pytest.mark.parametrize(
    ("principal", "message"),
    [(None, "needs to know who calls"), (Principal("digest", ISSUER, per_token=True), "names its user")],
)
async def test_a_caller_that_is_no_user_gets_no_token(desk: Desk, principal: Principal | None, message: str) -> None:
    context: Any = type("FakeContext", (), {"principal": principal})
    with pytest.raises(UpstreamTokenError, match=message) as raised:
        await desk.grants.token(context, Grant("github"))
    assert raised.value.reason == "missing"
    with pytest.raises(UpstreamTokenError, match=message):
        await desk.grants.end(principal, "github")


async def test_a_store_that_is_away_is_an_error_that_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_arguments: Any) -> Any:
        raise StoreUnavailableError

    await desk.token()
    monkeypatch.setattr(desk.store, "get", fail)
    for tool in ("star", "disconnect"):
        assert "can't reach its store of accounts" in await desk.call(tool)


async def test_an_unknown_service_is_a_mistake_of_the_author(desk: Desk) -> None:
    with pytest.raises(LookupError, match="The services there: github, files"):
        await desk.grants.end(Principal("ada", ISSUER), "gitlab")


def test_accounts_are_in_the_store_of_the_proxy_or_in_the_state(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = runtime_of(desk.mcp)
    assert runtime._open_grant_values().store is desk.store
    assert runtime._open_grant_values() is runtime._open_grant_values()
    assert not runtime.services.uses_state
    mcp = MCPServer("Keys", auth=Auth(ANYBODY, grants=[provider("code", public_url="https://keys.example.com")]))
    runtime = runtime_of(mcp)
    assert runtime._open_grant_values() is runtime.open_values()
    assert runtime.services.uses_state


def test_the_owner_of_an_account_is_the_issuer_with_the_subject() -> None:
    pairs = [("a", "b"), ("a", "c"), ("b", "a"), ("", "ab"), ("ab", ""), ('a", "b', "")]
    owners = {owner_of_user(issuer, subject).mark for issuer, subject in pairs}
    assert len(owners) == len(pairs)


@pytest.mark.parametrize(
    ("auth", "options", "expected"),
    [
        ({}, {"public_url": "https://desk.example.com/"}, "https://desk.example.com/grants/code/callback"),
        (
            {"resource": RESOURCE},
            {},
            "https://desk.example.com/grants/code/callback",
        ),
    ],
)
def test_the_redirect_uri_has_the_url_of_the_server(
    auth: dict[str, Any], options: dict[str, Any], expected: str
) -> None:
    mcp = MCPServer("Keys", auth=Auth(ANYBODY, grants=[provider("code", **options)], **auth))
    grants = runtime_of(mcp).grants
    assert grants is not None
    assert grants.redirect_uris == {"code": expected}


def test_a_server_whose_url_is_not_known_is_refused() -> None:
    with pytest.raises(ValueError, match="needs public_url="):
        MCPServer("Keys", auth=Auth(ANYBODY, grants=[provider("code")]))


async def test_a_proxy_below_a_path_has_the_pages_below_it(desk: Desk) -> None:
    proxy = desk.stage.instance(url="https://orders.example.com/orders/mcp", issuer="https://orders.example.com/orders")
    grants = ToolGrants(
        Auth(proxy, grants=[provider("code")]),
        proxy.visits,
        server_name=str,
        open_values=lambda: None,  # type: ignore[arg-type,return-value]
    )
    assert grants.redirect_uris == {"code": "https://orders.example.com/orders/grants/code/callback"}
    assert [route.path for route in grants.routes] == ["/orders/grants/code/connect", "/orders/grants/code/callback"]


def test_a_path_of_the_pages_that_a_route_has_is_an_error(desk: Desk) -> None:
    with pytest.raises(ValueError, match="has a route"):
        desk.mcp.custom_route("/grants/github/connect")(lambda _request: None)


# The client of a service


@pytest.mark.parametrize(
    ("options", "headers", "fields"),
    [
        ({}, {"authorization": "Basic aWQ6c2VjcmV0"}, {}),
        ({"token_endpoint_auth_method": "client_secret_post"}, {}, {"client_id": "id", "client_secret": "secret"}),
        ({"client_secret": None}, {}, {"client_id": "id"}),
        (
            {"client_secret": None, "credential": lambda: "signed"},
            {},
            {
                "client_id": "id",
                "client_assertion": "signed",
                "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            },
        ),
    ],
)
async def test_the_server_authenticates_as_the_service_wants(
    options: dict[str, Any], headers: Mapping[str, str], fields: Mapping[str, str]
) -> None:
    service = Service()
    defaults = {"client_secret": "secret", "authorize": f"{SITE}/authorize", "token": f"{SITE}/token"}
    client = ProviderClient(GrantProvider("code", "id", **defaults | options), service)
    await client.tokens({"code": "c"}, NOW)
    assert service.requests == [("POST", f"{SITE}/token", headers, {"code": "c", **fields})]


async def test_an_assertion_may_be_made_by_an_async_function() -> None:
    async def sign() -> str:
        return "signed"

    service = Service()
    client = ProviderClient(
        GrantProvider("code", "id", authorize=f"{SITE}/authorize", token=f"{SITE}/token", credential=sign), service
    )
    await client.tokens({"code": "c"}, NOW)
    assert service.forms[0]["client_assertion"] == "signed"


@pytest.mark.parametrize(
    ("answer", "until", "refresh_token"),
    [
        ({"expires_in": 3600}, NOW + 3540, None),
        ({"expires_in": 100, "refresh_token": "r"}, NOW + 90, "r"),
        ({"expires_in": "100", "refresh_token": "r"}, NOW + 270, "r"),
        ({"refresh_token": "r"}, NOW + 270, "r"),
        ({"refresh_token": "a b"}, NOW + NEVER_SECONDS - 60, None),
        ({}, NOW + NEVER_SECONDS - 60, None),
        ({"expires_in": 10**400}, NOW + NEVER_SECONDS - 60, None),
        ({"expires_in": 10**12}, NOW + NEVER_SECONDS - 60, None),
    ],
)
async def test_the_lifetime_of_a_token(answer: dict[str, Any], until: float, refresh_token: str | None) -> None:
    service = Service()
    service.answers = [(200, {"access_token": "t", **answer})]
    tokens = await ProviderClient(provider("code"), service).tokens({"code": "c"}, NOW)
    assert (tokens.until, tokens.refresh_token) == (until, refresh_token)


# Before the server starts


def needing(*names: str, auth: Any = None) -> MCPServer:
    """Return a server with a tool that needs grants."""
    mcp = MCPServer("Desk", auth=auth)

    @mcp.tool(grant=[Grant(name) for name in names])
    async def work(context: Context) -> str:
        return await context.grant_token(names[0])

    return mcp


def test_a_tool_whose_grant_nobody_can_give_is_an_error_at_the_start(desk: Desk) -> None:
    with pytest.raises(RuntimeError, match=r"'work' needs a grant of 'code'\. Write MCPServer\(auth="):
        runtime_of(needing("code")).begin()
    auth = Auth(ANYBODY, grants=[provider("files", public_url="https://desk.example.com")])
    with pytest.raises(
        RuntimeError, match=r"'code', which is not in Auth\(grants=\[\.\.\.\]\)\. The services there: files"
    ):
        runtime_of(needing("files", "code", auth=auth)).begin()
    runtime_of(desk.mcp).begin()


def test_a_mounted_server_uses_the_grants_of_the_server_above(desk: Desk) -> None:
    desk.mcp.mount(needing("github"), prefix="below")
    runtime_of(desk.mcp).begin()
    desk.mcp.mount(needing("unknown"), prefix="other")
    with pytest.raises(RuntimeError, match="'work' needs a grant of 'unknown'"):
        runtime_of(desk.mcp).begin()


def test_stdio_has_nobody_who_could_give_a_grant(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        needing("github").run("stdio")
    assert raised.value.code == 2
    assert "stdio has no sign-in" in capsys.readouterr().err


async def test_a_tool_in_memory_without_grants_is_an_error() -> None:
    mcp = MCPServer("Desk")

    @mcp.tool
    async def work(context: Context) -> str:
        return await context.grant_token("github")

    async with Client(mcp) as client:
        assert (await client.call_tool("work")).is_error


@pytest.mark.parametrize("value", ["github", 5, [Grant("github"), "x"], {"github": []}])
def test_the_option_of_a_tool_is_a_grant_or_a_list_of_them(value: Any) -> None:
    mcp = MCPServer("Desk")
    with pytest.raises(ValueError, match=r"grant of work must be Grant\("):
        mcp.tool(grant=value)(work)


def work() -> None:
    """Do nothing."""
