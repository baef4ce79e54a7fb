"""Users who are signed in to a server in a test."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from funcmcp import Auth, Context, MCPServer
from funcmcp.auth import (
    OIDC,
    APIKeys,
    BearerTokens,
    OAuthProxy,
    ProtectedResource,
    StaticKeys,
    TokenRules,
    User,
    entra,
    first_of,
)
from funcmcp.client import AuthenticationError, SignInError
from funcmcp.state import KeyRing, MemorySignIns
from funcmcp.testing import Client, SignedIn
from tests.auth.making_tokens import AUDIENCE, ISSUER, Clock, public

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

URL = "https://orders.example.com/mcp"
SCOPES = {"orders.read": "See your orders", "orders.write": "Place and cancel orders"}
TENANT, APP = "11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-000000000000"
ADA = User("ada", name="Ada", email="ada@example.com", roles=frozenset({"cook"}))
BOB = User("bob")


def behind(authenticator: Any, **options: Any) -> MCPServer:
    """Return a server that says who calls it."""
    mcp = MCPServer("Orders", auth=Auth(authenticator, **options))

    @mcp.tool
    def who_am_i(context: Context) -> dict[str, Any]:
        principal = context.principal
        assert principal is not None
        return {
            "subject": principal.subject,
            "name": principal.name,
            "roles": sorted(principal.roles),
            "scopes": sorted(principal.scopes),
            "claims": dict(principal.claims),
        }

    @mcp.tool(scopes=["orders.write"])
    def order() -> str:
        return "ordered"

    return mcp


def proxied(**options: Any) -> MCPServer:
    upstream = OIDC("https://login.example.com", "orders", "secret")
    return behind(OAuthProxy(URL, upstream=upstream, scopes=SCOPES, **options), scopes=["orders.read"])


def with_bearer(rules: TokenRules | None = None, **options: Any) -> MCPServer:
    keys = StaticKeys(public())
    if rules is not None and rules.algorithms[0] == "HS256":
        keys = StaticKeys(public("oct"))
    resource = ProtectedResource(resource=AUDIENCE, authorization_servers=[ISSUER], scopes=["orders.read"])
    return behind(BearerTokens(ISSUER, AUDIENCE, keys=keys, rules=rules, **options), resource=resource)


async def caller(mcp: MCPServer, headers: dict[str, str]) -> dict[str, Any]:
    async with Client(mcp, headers=headers) as client:
        content: dict[str, Any] | None = (await client.call_tool("who_am_i", {})).structured_content
    assert content is not None
    return content


SERVERS = pytest.mark.parametrize(
    "make",
    [
        proxied,
        lambda: proxied(store=MemorySignIns()),
        lambda: proxied(issuer=URL.removesuffix("/mcp"), keys=KeyRing([b"k" * 32])),
        lambda: proxied(clients=["https://claude.ai"], dpop="required"),
        with_bearer,
        lambda: with_bearer(TokenRules(types=("JWT",), algorithms=("RS256",))),
        lambda: with_bearer(TokenRules(algorithms=("HS256",))),
        lambda: with_bearer(TokenRules(algorithms=("EdDSA",))),
        lambda: with_bearer(TokenRules(algorithms=("ES384",), required={"tenant": "kitchen", "sub": None})),
        lambda: with_bearer(TokenRules(any_of=(("scp", "roles"), ("azp", "appid")))),
        lambda: with_bearer(dpop="required"),
        lambda: with_bearer(TokenRules(roles_claim="realm_access.roles", scope_claims=("permissions",))),
        lambda: with_bearer(TokenRules(roles_claim=("https://a.example", "roles"), scope_prefix="api://orders/")),
        lambda: with_bearer(TokenRules(subject_claims=("client_id", "sub"), clients_without_audience=["ada"])),
        lambda: with_bearer(clock=Clock()),
        lambda: behind(entra(TENANT, APP)),
        lambda: behind(first_of(APIKeys({"robot": "k" * 32}), entra(TENANT, APP))),
    ],
)


@SERVERS
async def test_a_user_is_signed_in_inside_the_block_only(make: Callable[[], MCPServer]) -> None:
    mcp = make()
    async with SignedIn(mcp, ADA, scopes=["orders.read"]) as headers:
        seen = await caller(mcp, headers)
        assert (seen["subject"], seen["name"], seen["roles"]) == ("ada", "Ada", ["cook"])
        assert seen["scopes"] == ["orders.read"]
        async with Client(mcp, headers=headers) as client:
            with pytest.raises(AuthenticationError, match="insufficient_scope"):
                await client.call_tool("order", {})
    bearer = headers["authorization"].removeprefix("Bearer ")
    assert bearer.count(".") == 2


@pytest.mark.parametrize("make", [proxied, with_bearer])
async def test_after_the_block_the_token_is_refused(make: Callable[[], MCPServer]) -> None:
    mcp = make()
    with SignedIn(mcp, ADA) as headers:
        assert (await caller(mcp, headers))["scopes"][0] == "orders.read"
    with pytest.raises(AuthenticationError, match="401"):
        await caller(mcp, headers)


async def test_without_scopes_the_user_has_all_that_the_server_knows() -> None:
    for mcp in (proxied(), with_bearer()):
        async with SignedIn(mcp, ADA) as headers, Client(mcp, headers=headers) as client:
            assert (await client.call_tool("order", {})).text == "ordered"


async def test_several_users_are_signed_in_at_once_and_leave_in_any_order() -> None:
    for mcp in (proxied(), with_bearer()):
        ada, bob = SignedIn(mcp, ADA), SignedIn(mcp, BOB)
        of_ada = await ada.__aenter__()
        of_bob = await bob.__aenter__()
        assert (await caller(mcp, of_ada))["subject"] == "ada"
        await ada.__aexit__(None, None, None)
        assert (await caller(mcp, of_bob))["subject"] == "bob"
        with pytest.raises(AuthenticationError):
            await caller(mcp, of_ada)
        await bob.__aexit__(None, None, None)
        with pytest.raises(AuthenticationError):
            await caller(mcp, of_bob)


async def test_allow_decides_with_the_user_of_the_test() -> None:
    users: list[User] = []

    async def allow(user: User) -> bool | Sequence[str]:
        await asyncio.sleep(0)
        users.append(user)
        return ["orders.read"] if user.email == "ada@example.com" else False

    mcp = proxied(allow=allow)
    async with SignedIn(mcp, ADA) as headers:
        assert (await caller(mcp, headers))["scopes"] == ["orders.read"]
    with pytest.raises(SignInError, match="Orders refuses the sign-in: invalid_grant"), SignedIn(mcp, BOB):
        pass
    assert users == [ADA, BOB]


@pytest.mark.parametrize("option", ["allow", "claims"])
async def test_what_a_function_raises_fails_the_test(option: str) -> None:
    def function(_user: User) -> bool:
        raise LookupError("no such table")

    with pytest.raises(LookupError, match="no such table"):
        async with SignedIn(proxied(**{option: function}), ADA):
            pass
    with pytest.raises(LookupError, match="no such table"), SignedIn(proxied(**{option: function}), ADA):
        pass


async def test_a_scope_that_the_server_does_not_have_is_named() -> None:
    with pytest.raises(SignInError, match=r"invalid_scope: The scopes are: orders\.read orders\.write\."):
        async with SignedIn(proxied(), ADA, scopes=["orders.delete"]):
            pass


async def test_a_claim_that_the_rules_require_is_missing() -> None:
    rules = TokenRules(required={"employee": None})
    with pytest.raises(SignInError, match="lacks the claim employee"):
        async with SignedIn(with_bearer(rules), ADA):
            pass
    async with SignedIn(mcp := with_bearer(rules), User("ada", claims={"employee": 7, "org": ["a"]})) as headers:
        seen = (await caller(mcp, headers))["claims"]
    assert (seen["employee"], seen["org"], seen["iss"], seen["aud"]) == (7, ["a"], ISSUER, AUDIENCE)


async def test_the_proxy_keeps_the_claims_that_it_names() -> None:
    user = User("ada", claims={"org_id": "kitchen", "department": "soups"})
    async with SignedIn(mcp := proxied(claims=["org_id"]), user) as headers:
        seen = (await caller(mcp, headers))["claims"]
    assert (seen["org_id"], "department" in seen) == ("kitchen", False)
    async with SignedIn(mcp := proxied(claims=lambda user: {"dish": user.claims["department"]}), user) as headers:
        assert (await caller(mcp, headers))["claims"]["dish"] == "soups"


async def test_the_issuer_of_several_is_named_by_a_claim() -> None:
    upstream = OIDC("https://login.example.com", "orders", "secret")
    first, second = [
        BearerTokens(issuer, URL, keys=StaticKeys(public())) for issuer in ("https://a.example", "https://b.example")
    ]
    for mcp, usual in (
        (behind(first_of(first, second)), "https://a.example"),
        (behind(first_of(second, OAuthProxy(URL, upstream=upstream, scopes=SCOPES))), "https://orders.example.com"),
    ):
        async with SignedIn(mcp, ADA) as headers:
            assert (await caller(mcp, headers))["claims"]["iss"] == usual
        async with SignedIn(mcp, User("ada", claims={"iss": "https://b.example"})) as headers:
            assert (await caller(mcp, headers))["claims"]["iss"] == "https://b.example"


async def test_the_keys_and_the_store_of_the_server_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCMCP_KEYS", "A" * 43)
    store = MemorySignIns()
    mcp, same = proxied(store=store), proxied()
    async with SignedIn(mcp, ADA) as headers:
        with pytest.raises(AuthenticationError):  # another process with the same keys
            await caller(same, headers)
    assert not store._records


async def test_an_application_in_this_process_is_called_with_the_headers() -> None:
    mcp = proxied()
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=mcp), base_url="http://127.0.0.1") as client:
        assert (await client.post("/mcp", json=message, headers=accept)).status_code == 401
        async with SignedIn(mcp, ADA) as headers:
            assert (await client.post("/mcp", json=message, headers=accept | headers)).status_code != 401


def test_a_server_without_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="Orders has no auth"):
        SignedIn(MCPServer("Orders"), ADA)
    with pytest.raises(TypeError, match="pass the header fields"):
        SignedIn(behind(APIKeys({"robot": "k" * 32})), ADA)
    with pytest.raises(TypeError, match="not one string"):
        SignedIn(proxied(), ADA, scopes="orders.read")
    with pytest.raises(TypeError, match=r"a User, such as User\('ada'\), not str"):
        SignedIn(proxied(), "ada")  # type: ignore[arg-type]


@pytest.mark.parametrize("variable", ["WEBSITE_INSTANCE_ID", "KUBERNETES_SERVICE_HOST", "K_SERVICE"])
def test_a_deployed_server_signs_no_user_of_a_test_in(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "1")
    with pytest.raises(ValueError, match=variable):
        SignedIn(proxied(), ADA)
