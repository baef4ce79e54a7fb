"""Three instances behind HAProxy in the middle of a rotation of keys: each request goes to another one.

Without a store, and with one store for all of them. Provider and host of the last test are scripts of our own: no
provider that can be installed issues identity assertions, and no document of a client may be on a loopback address.
"""

from __future__ import annotations

import asyncio
import itertools
from contextlib import ExitStack, contextmanager
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest

from funcmcp import Context, MCPServer
from funcmcp._oauth_proxy.flows import challenge_of
from funcmcp._oauth_proxy.identity_assertions import ASSERTION_GRANT
from funcmcp._processes.server import origin_of
from funcmcp.auth import OIDC, Auth, OAuthProxy
from funcmcp.client import Client, HTTPEndpoint, SignIn
from funcmcp.redis import RedisLink, RedisSignIns
from funcmcp.state import KeyRing
from tests.auth.making_tokens import sign
from tests.clients.signing_in import Recorder, serving_in_thread
from tests.clients.test_sign_in import Memory
from tests.cluster.proxy import proxied
from tests.oauth_proxy.test_client_documents import URL as DOCUMENT_URL
from tests.oauth_proxy.test_client_documents import serving as serving_documents
from tests.oauth_proxy.test_oidc import running as running_provider
from tests.patience import PATIENCE
from tests.redis_server import redis_server
from tests.sign_in.browsing import filled_in, visit
from tests.sign_in.people import HOST, SCOPES, oidc_provider, orders
from tests.sign_in.people import SignIn as Served
from tests.sign_in.test_clients import call_official, expire
from tests.sockets import listen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from socket import socket

    from tests.oauth_proxy.test_client_documents import Host
    from tests.oauth_proxy.test_oidc import Provider

pytestmark = pytest.mark.slow("Clients and identity providers of others start for each case.")

OLD, NEW = b"the old key of the tests" * 2, b"the new key of the tests" * 2


@pytest.fixture(scope="module", params=["without a store", "with a store"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Serve three instances: one still seals with the old key, and all open what is sealed with either."""
    log: list[Any] = []
    with ExitStack() as stack:
        url, listeners = stack.enter_context(behind_haproxy(tmp_path_factory.mktemp("haproxy")))
        origin = url.removesuffix("/mcp")
        upstream = stack.enter_context(oidc_provider(f"{origin}/oauth/callback"))
        redis = stack.enter_context(redis_server()).url if request.param == "with a store" else None
        for number, listener in enumerate(listeners):
            app = orders(url, upstream, keys=keys_of(number), store=None if redis is None else store_at(redis))
            stack.enter_context(serving_in_thread(Recorder(f"instance {number}", app, log), listener))
        yield Served(url, origin, upstream, log)


@contextmanager
def behind_haproxy(folder: Path) -> Iterator[tuple[str, list[socket]]]:
    """Run HAProxy in front of three sockets that listen; return the URL of the endpoint, and the sockets."""
    listeners = [listen(HOST, 0) for _ in range(3)]
    with proxied([f"{origin_of(HOST, listener)}/mcp" for listener in listeners], folder, balance="roundrobin") as url:
        yield url, listeners


def keys_of(number: int) -> KeyRing:
    """Return the keys of an instance: the first one still seals with the old key."""
    return KeyRing([OLD, NEW] if number == 0 else [NEW, OLD])


def store_at(redis: str) -> RedisSignIns:
    return RedisSignIns(RedisLink(redis, timeout=PATIENCE))


def assert_each_step_is_on_another_instance(log: list[Any]) -> None:
    """Check that no two consecutive requests reached the same instance, and that none was refused."""
    instances = [asked.server for asked in log]
    assert all(first != second for first, second in itertools.pairwise(instances)), instances
    steps = {asked.what for asked in log if "/oauth/" in asked.what}
    assert steps >= {"GET /oauth/authorize", "POST /oauth/consent", "GET /oauth/callback", "POST /oauth/token"}
    assert not [asked for asked in log if "/oauth/" in asked.what and asked.status >= 400]


@pytest.mark.parametrize("start", range(3))
async def test_our_client_signs_in_steps_up_and_renews_with_each_step_on_another_instance(
    served: Served, tmp_path: Path, start: int
) -> None:
    for _ in range(start):  # so that each step is once on the instance that seals with the old key
        httpx2.get(f"{served.origin}/.well-known/oauth-authorization-server")
    served.log.clear()
    opened = []

    async def go(address: str) -> None:
        opened.append(address)
        await visit(address, "ivy")

    file = tmp_path / "tokens.json"
    endpoint = HTTPEndpoint(served.url, sign_in=SignIn(open_browser=go, file=file))
    async with Client(endpoint) as client:
        assert (await client.call_tool("who")).structured_content["subject"] == "ivy"
        assert (await client.call_tool("order", {"dish": "soup"})).structured_content == {"ordered": "soup"}
        for _ in range(3):
            expire(file, served.url)
            assert (await client.call_tool("who")).structured_content["subject"] == "ivy"
    assert len(opened) == 2  # the sign-in, and the further scope
    assert len([asked for asked in served.log if asked.values.get("grant_type") == "refresh_token"]) == 3
    assert_each_step_is_on_another_instance(served.log)


async def test_the_official_client_signs_in_and_steps_up_across_instances(served: Served) -> None:
    served.log.clear()
    memory = Memory()
    who, ordered = await call_official(served.url, memory, "auto", ("who", {}), ("order", {"dish": "pie"}), user="otto")
    assert (who["subject"], ordered) == ("otto", {"ordered": "pie"})
    assert_each_step_is_on_another_instance(served.log)


async def test_a_user_denies_it_and_a_sign_in_is_revoked_across_instances(served: Served) -> None:
    with pytest.raises(BaseExceptionGroup):
        await call_official(served.url, Memory(), "auto", ("who", {}), decision="deny")
    memory = Memory()
    await call_official(served.url, memory, "auto", ("who", {}), user="rita")
    assert memory.tokens is not None
    assert memory.client is not None
    form = {"token": memory.tokens.refresh_token, "client_id": memory.client.client_id}
    async with httpx2.AsyncClient(timeout=PATIENCE) as http:
        assert (await http.post(f"{served.origin}/oauth/revoke", data=form)).status_code == 200
        renewal = {
            "grant_type": "refresh_token",
            "refresh_token": memory.tokens.refresh_token,
            "client_id": memory.client.client_id,
        }
        for _ in range(3):
            assert (await http.post(f"{served.origin}/oauth/token", data=renewal)).status_code == 400


AGENT, AGENT_SECRET = "agent", "a secret of the tests"
VERIFIER = "a-verifier-of-the-client-with-more-than-43-characters"


def mailer(url: str, issuer: str, host: Host, **options: Any) -> MCPServer:
    """Return a server whose tool gets a token for another API, for clients with documents and identity assertions."""
    upstream = OIDC(issuer, "app", "secret", token_exchange=True)
    proxy = OAuthProxy(url, upstream=upstream, scopes=SCOPES, identity_assertions={AGENT: AGENT_SECRET}, **options)
    object.__setattr__(proxy._settings, "documents", host.new_documents())
    mcp = MCPServer("Mailer", auth=Auth(proxy, scopes=["orders.read"]))

    @mcp.tool
    async def send(context: Context) -> list[str | None]:
        assert context.principal is not None
        return [context.principal.subject, context.principal.client_id, await context.upstream_token(["mail.send"])]

    @mcp.tool
    async def who(context: Context) -> str | None:
        return None if context.principal is None else context.principal.subject

    return mcp


def provider_token(provider: Provider, kind: str = "JWT", **claims: Any) -> str:
    """Return a token of a provider that is valid now."""
    good = {"iss": provider.issuer, "aud": "app", "sub": "ada", "iat": int(time()), "exp": int(time()) + 300}
    return sign(good | claims, header={"typ": kind})


async def sign_in_with_document(http: httpx2.AsyncClient, url: str, provider: Provider) -> str:
    """Sign in as a client whose id is the URL of a document; return the access token."""
    back = "http://localhost:5000/callback"
    client = {"client_id": DOCUMENT_URL, "redirect_uri": back, "resource": url}
    asking = {"response_type": "code", "code_challenge": challenge_of(VERIFIER), "code_challenge_method": "S256"}
    page = await http.get("/oauth/authorize", params=client | asking | {"state": "s"})
    form = filled_in(page.text, "") | {"decision": "allow"}
    sent = await http.post("/oauth/consent", data=form, headers={"origin": url.removesuffix("/mcp")})
    parameters = dict(parse_qsl(urlsplit(sent.headers["location"]).query))
    issued = {"id_token": provider_token(provider, nonce=parameters["nonce"]), "access_token": "of the sign-in"}
    provider.answers["/token"] = 200, issued | {"token_type": "Bearer", "expires_in": 3000}
    returned = {"code": "code", "state": parameters["state"], "iss": provider.issuer}
    answer = await http.get("/oauth/callback", params=returned)
    code = dict(parse_qsl(urlsplit(answer.headers["location"]).query))["code"]
    exchange = client | {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
    tokens = await http.post("/oauth/token", data=exchange)
    return str(tokens.json()["access_token"])


async def test_documents_assertions_and_tokens_for_other_apis_work_across_instances(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("funcmcp._oauth_proxy.client_documents._SECONDS", PATIENCE)
    log: list[Any] = []
    with ExitStack() as stack:
        url, listeners = stack.enter_context(behind_haproxy(tmp_path))
        origin, redis = url.removesuffix("/mcp"), stack.enter_context(redis_server()).url
        async with (
            running_provider() as provider,
            serving_documents(tmp_path) as host,
            httpx2.AsyncClient(base_url=origin, timeout=PATIENCE) as http,
        ):
            for number, listener in enumerate(listeners):
                app = mailer(url, provider.issuer, host, keys=keys_of(number), store=store_at(redis))
                stack.enter_context(serving_in_thread(Recorder(f"instance {number}", app, log), listener))
            token = await sign_in_with_document(http, url, provider)
            assert_each_step_is_on_another_instance(log)
            assert len(host.requests) == 1  # the other instances do not need the document

            provider.answers["/token"] = 200, {"access_token": "of the mail", "expires_in": 3000}
            async with Client(url, headers={"authorization": f"Bearer {token}"}) as client:
                for _ in range(3):
                    result = (await client.call_tool("send")).structured_content
                    assert result == {"result": ["ada", DOCUMENT_URL, "of the mail"]}
            exchanged = [form for form in provider.forms("/token") if "subject_token" in form]
            assert {form["subject_token"] for form in exchanged} == {"of the sign-in"}
            assert len({asked.server for asked in log if asked.what.endswith("tools/call send")}) == 3

            claims = {"aud": origin, "resource": url, "client_id": AGENT, "jti": "one", "scope": "orders.read"}
            form = {
                "grant_type": ASSERTION_GRANT,
                "client_id": AGENT,
                "client_secret": AGENT_SECRET,
                "assertion": provider_token(provider, "oauth-id-jag+jwt", **claims),
            }
            answers = await asyncio.gather(*(http.post("/oauth/token", data=form) for _ in range(6)))
            assert sorted(answer.status_code for answer in answers) == [200] + [400] * 5
            (issued,) = [answer.json() for answer in answers if answer.status_code == 200]
            async with Client(url, headers={"authorization": f"Bearer {issued['access_token']}"}) as client:
                for _ in range(3):
                    assert (await client.call_tool("who")).text == "ada"
