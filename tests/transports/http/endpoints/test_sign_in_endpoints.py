"""The endpoints of a proxy over HTTP: admission, sizes, CORS, failures, and what stays as it is without a proxy."""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest

from funcmcp import HTTPOptions, MCPServer, ServerInfo
from funcmcp._serving import configuration_checks
from funcmcp._serving.composition import runtime_of
from funcmcp._serving.local_sign_in import sign_in_locally
from funcmcp._transports.http.endpoints import health
from funcmcp.auth import APIKeys, Auth, Program, ProtectedResource, first_of
from funcmcp.state import KeyRing, MemoryRates, MemorySignIns, StoreUnavailableError
from tests.oauth_proxy.stage import ISSUER, URL, ScriptedUpstream, Stage, challenge_of

HOST = "orders.example.com"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


def server(stage: Stage, **options: Any) -> MCPServer:
    http = HTTPOptions(**{"allowed_hosts": [HOST]} | options)
    auth = Auth(first_of(stage.proxy, APIKeys({"night-job": "a-key-of-the-tests"})), scopes=["orders.read"])
    return MCPServer("orders", info=ServerInfo(title="The Orders"), auth=auth, http=http, sessions=None)


def client(mcp: MCPServer) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=mcp), base_url=ISSUER)


@pytest.fixture
async def stage() -> Stage:
    return await Stage().with_client()


async def test_a_client_signs_in_with_nothing_but_the_url(stage: Stage) -> None:
    async with client(server(stage)) as http:
        refused = await http.post("/mcp", json=LIST)
        metadata = f"{ISSUER}/.well-known/oauth-protected-resource/mcp"
        expected = f'Bearer scope="orders.read", resource_metadata="{metadata}"'
        assert (refused.status_code, refused.headers["www-authenticate"]) == (401, expected)
        resource = (await http.get(metadata)).json()
        assert resource == {
            "resource": URL,
            "authorization_servers": [ISSUER],
            "scopes_supported": ["orders.read", "orders.write"],
            "bearer_methods_supported": ["header"],
        }
        issuer = (await http.get("/.well-known/oauth-authorization-server")).json()
        registered = await http.post(issuer["registration_endpoint"], json={"redirect_uris": ["http://localhost/back"]})
        assert registered.status_code == 201
        query = {
            "client_id": registered.json()["client_id"],
            "redirect_uri": "http://localhost:5000/back",
            "response_type": "code",
            "code_challenge": challenge_of("v" * 43),
            "code_challenge_method": "S256",
        }
        page = await http.get(f"{issuer['authorization_endpoint']}?{urlencode(query)}")
        assert (page.status_code, "The Orders" in page.text) == (200, True)
        assert len(page.headers.get_list("set-cookie")) == 1


async def test_a_token_of_the_proxy_and_a_key_are_accepted_side_by_side(stage: Stage) -> None:
    token = (await stage.tokens())["access_token"]
    async with client(server(stage)) as http:
        for headers, status in (
            ({"authorization": f"Bearer {token}"}, 200),
            ({"x-api-key": "a-key-of-the-tests"}, 403),
            ({"authorization": f"Bearer {token}x"}, 401),
            ({}, 401),
        ):
            assert (await http.post("/mcp", json=LIST, headers=headers)).status_code == status
        assert (await http.post(f"/mcp?access_token={token}", json=LIST)).status_code == 401


async def test_other_hosts_are_refused_and_other_origins_may_use_the_endpoints_for_clients(stage: Stage) -> None:
    async with client(server(stage)) as http:
        answer = await http.get("/.well-known/oauth-authorization-server", headers={"host": "evil.example"})
        assert answer.status_code == 421
        origin = {"origin": "https://inspector.example"}
        answer = await http.get("/.well-known/oauth-authorization-server", headers=origin)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "*")
        assert (await http.options("/oauth/token", headers=origin)).status_code == 204
        assert (await http.post("/oauth/consent", headers=origin | FORM)).status_code == 403
        assert (await http.post("/mcp", json=LIST, headers=origin)).status_code == 403


async def test_origins_that_the_author_allows_get_their_own_headers(stage: Stage) -> None:
    async with client(server(stage, allowed_origins=["https://inspector.example"])) as http:
        answer = await http.post("/oauth/token", headers=FORM | {"origin": "https://inspector.example"})
        assert answer.headers.get_list("access-control-allow-origin") == ["https://inspector.example"]


async def test_what_the_http_layer_refuses_is_an_oauth_error_or_a_page(stage: Stage) -> None:
    async with client(server(stage)) as http:
        for path in ("/oauth/register", "/oauth/token", "/oauth/revoke"):
            answer = await http.post(path, content=b"x" * 16_385, headers={"origin": "https://inspector.example"})
            expected = {"error": "invalid_request", "error_description": "The body may have 16384 bytes."}
            assert (answer.status_code, answer.json()) == (413, expected)
            fields = answer.headers
            assert (fields["content-type"], fields["cache-control"]) == ("application/json", "no-store")
            assert fields["access-control-allow-origin"] == "*"
        for path in ("/oauth/consent", "/oauth/authorize"):
            answer = await http.post(path, content=b"x" * 16_385)
            assert (answer.status_code, "The body may have 16384 bytes." in answer.text) == (413, True)
            assert (answer.headers["content-type"], "jsonrpc" in answer.text) == ("text/html; charset=utf-8", False)
        answer = await http.get("/oauth/keys", headers={"x-long": "x" * 100_000})
        assert (answer.status_code, answer.json()["error"]) == (431, "invalid_request")


async def test_documents_answer_head_as_get(stage: Stage) -> None:
    documents = {"/.well-known/oauth-protected-resource", "/oauth/keys"}
    documents |= {path for path in stage.proxy.paths if path.startswith("/.well-known/")}
    async with client(server(stage)) as http:
        for path in documents:
            get, head = await http.get(path), await http.head(path)
            assert (head.status_code, dict(head.headers)) == (200, dict(get.headers))
            refused = await http.post(path)
            assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
        assert (await http.head("/oauth/token")).headers["allow"] == "POST"


async def test_the_rates_of_the_server_hold_for_the_sign_in_too(stage: Stage) -> None:
    async with client(server(stage, rates=MemoryRates(0.001, 2))) as http:
        answers = [await http.get("/oauth/keys") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert (answers[2].json()["error"], "retry-after" in answers[2].headers) == ("temporarily_unavailable", True)


async def test_a_failure_is_in_the_log_and_not_in_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    stage = await Stage().with_client()
    form = {
        "grant_type": "authorization_code",
        "code": await stage.code(),
        "client_id": stage.client_id,
        "code_verifier": "a-verifier-of-the-client-with-more-than-43-characters",
    }
    stage.upstream.down = ZeroDivisionError("of the author")  # of an upstream of one's own
    async with client(server(stage)) as http:
        answer = await http.post("/oauth/token", data=form)
    assert (answer.status_code, "of the author" in answer.text) == (500, False)
    assert answer.json()["error"] == "server_error"
    assert "of the author" in caplog.text
    assert form["code"] not in caplog.text


async def test_a_custom_route_can_not_have_a_path_of_the_sign_in(stage: Stage) -> None:
    mcp = server(stage)
    with pytest.raises(ValueError, match="has an endpoint at '/oauth/token'"):
        mcp.custom_route("/oauth/token", methods=["POST"])(lambda request: None)


async def test_a_server_without_a_proxy_has_no_such_paths() -> None:
    mcp = MCPServer("orders", auth=APIKeys({"night-job": "a-key-of-the-tests"}), http=HTTPOptions(allowed_hosts=[HOST]))
    async with client(mcp) as http:
        for path in ("/oauth/authorize", "/.well-known/oauth-authorization-server"):
            assert (await http.get(path)).status_code == 404


@pytest.fixture
def several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_SOFTWARE", "gunicorn/27")


def test_several_processes_need_shared_keys(
    several: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage()
    stage.proxy = stage.instance(KeyRing())
    with pytest.raises(RuntimeError, match="Set FUNCMCP_KEYS to the same value for all processes"):
        runtime_of(server(stage)).begin()
    caplog.set_level(logging.INFO)
    stage.proxy = stage.instance()
    runtime_of(server(stage)).begin()
    assert f"Redirect URI to register at the identity provider: {ISSUER}/oauth/callback" in caplog.text


@pytest.mark.parametrize("variable", ["WEBSITE_INSTANCE_ID", "CONTAINER_APP_NAME"])
def test_an_app_on_azure_needs_shared_keys(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "1")
    stage = Stage()
    stage.proxy = stage.instance(KeyRing())
    with pytest.raises(RuntimeError, match="FUNCMCP_KEYS"):
        runtime_of(server(stage)).begin()


def test_several_processes_need_a_store_that_all_of_them_reach(several: None) -> None:
    stage = Stage()
    stage.proxy = stage.instance(store=MemorySignIns())
    with pytest.raises(RuntimeError, match="Use a store that all of them reach"):
        runtime_of(server(stage)).begin()


async def test_the_store_of_sign_ins_is_checked_by_readiness_and_closed_at_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Away(MemorySignIns):
        is_away, is_closed = True, False

        async def get(self, key: str) -> str | None:
            if self.is_away:
                raise StoreUnavailableError
            return await super().get(key)

        async def aclose(self) -> None:
            self.is_closed = True

    caplog.set_level(logging.INFO)
    store = Away()
    mcp = server(Stage(store=store))
    runtime_of(mcp).begin()
    assert "has no store" not in caplog.text
    for is_away, status in ((True, 503), (False, 200)):
        store.is_away = is_away
        monkeypatch.setattr(health, "_FRESH_SECONDS", 0.0)
        async with client(mcp) as http:
            assert (await http.get("/readyz")).status_code == status
    await runtime_of(mcp).aclose()
    assert store.is_closed


def test_the_log_says_once_that_there_is_no_store(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    runtime_of(server(Stage())).begin()
    assert caplog.text.count("has no store, so a sign-in is renewed for 24 hours at most") == 1


def test_a_sign_in_without_a_provider_has_no_redirect_uri_to_register(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    mcp = server(Stage())
    sign_in_locally(runtime_of(mcp), {"sub": "ada"}, "http://127.0.0.1:8000")
    runtime_of(mcp).begin()
    assert "has no store" in caplog.text
    assert "Redirect URI" not in caplog.text


def test_a_single_process_with_a_random_key_is_warned(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.proxy = stage.instance(KeyRing())
    runtime_of(server(stage)).begin()
    assert "must sign in again after every restart" in caplog.text


def test_keys_of_the_environment_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCMCP_KEYS", "a" * 43)
    assert Stage().instance(None).has_shared_keys  # type: ignore[arg-type]


@pytest.mark.parametrize("is_lasting", [True, False])
def test_workers_with_the_key_of_a_command_are_warned_as_well(
    is_lasting: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FUNCMCP_KEYS", "a" * 43)
    monkeypatch.setenv("FUNCMCP_COMMAND_KEY", ("b" if is_lasting else "a") * 43)
    stage = Stage()
    stage.proxy = stage.instance(None)  # type: ignore[arg-type]
    runtime_of(server(stage)).begin()
    assert ("must sign in again after every restart" in caplog.text) != is_lasting


@pytest.mark.parametrize(
    ("url", "host", "status"),
    [
        (URL, "orders.example.com", 401),
        (URL, "ORDERS.example.com", 401),
        (URL, "orders.example.com:8000", 401),
        (URL, "evil.example.com", 421),
        (URL, "orders.example.com.evil.example", 421),
        (URL, "x.orders.example.com", 421),
        ("https://orders.example.com:8443/mcp", "orders.example.com:8443", 401),
        ("https://orders.example.com:8443/mcp", "orders.example.com", 421),
        ("http://localhost:8000/mcp", "localhost:8000", 421),
        ("http://127.0.0.1:8000/mcp", "127.0.0.1:8000", 421),
    ],
)
async def test_the_host_of_the_sign_in_is_allowed_by_itself_and_no_other(url: str, host: str, status: int) -> None:
    """The connection comes to an address of the network, on which loopback names are not allowed."""
    stage = Stage()
    stage.proxy = stage.instance(url=url)
    mcp = MCPServer("orders", auth=Auth(stage.proxy), sessions=None)
    transport = httpx2.ASGITransport(app=mcp)
    async with httpx2.AsyncClient(transport=transport, base_url="http://192.0.2.7") as http:
        answer = await http.post("/mcp", json=LIST, headers={"host": host})
    assert answer.status_code == status


async def test_the_host_of_the_metadata_is_allowed_with_other_tokens_too() -> None:
    resource = ProtectedResource(resource=URL, authorization_servers=["https://login.example.com"])
    mcp = MCPServer("orders", auth=Auth(APIKeys({"a": "a-key-of-the-tests"}), resource=resource), sessions=None)
    async with client(mcp) as http:
        assert (await http.post("/mcp", json=LIST)).status_code == 401


class CheckedUpstream(ScriptedUpstream):
    """An identity provider that is looked at when the server begins.

    Attributes:
        checks: How often.
        answers: The check waits for it.
        failure: What the check raises.
        is_cancelled: Whether a check was cancelled.
    """

    def __init__(self, failure: Exception | None = None) -> None:
        super().__init__()
        self.checks = 0
        self.answers = asyncio.Event()
        self.failure = failure
        self.is_cancelled = False

    async def check(self) -> None:
        self.checks += 1
        try:
            await self.answers.wait()
        except asyncio.CancelledError:
            self.is_cancelled = True
            raise
        if self.failure is not None:
            raise self.failure


async def turns() -> None:
    """Let other tasks run."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_first_requests_are_answered_before_the_check() -> None:
    upstream = CheckedUpstream()
    runtime = runtime_of(server(Stage(upstream=upstream)))
    runtime.on_listening("127.0.0.1")
    await turns()
    assert upstream.checks == 0
    await runtime.aclose()


async def test_the_provider_is_looked_at_beside_serving_once_and_not_after_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(configuration_checks, "CHECK_DELAY", 0)
    upstream = CheckedUpstream()
    runtime = runtime_of(server(Stage(upstream=upstream)))
    await runtime.start()
    await asyncio.sleep(0)
    assert upstream.checks == 0  # on stdio nobody signs in
    for _ in range(3):
        runtime.on_listening("127.0.0.1")
    await turns()
    assert upstream.checks == 1
    async with client(server(Stage(upstream=upstream))) as http:
        assert (await http.post("/mcp", json=LIST)).status_code == 401  # without waiting for the check
    await runtime.aclose()
    assert upstream.is_cancelled


async def test_without_a_lifespan_the_first_request_begins_the_check(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(configuration_checks, "CHECK_DELAY", 0)
    upstream = CheckedUpstream(ValueError("broken\r\nforged"))
    upstream.answers.set()
    async with client(server(Stage(upstream=upstream))) as http:
        for _ in range(2):
            await http.post("/mcp", json=LIST)
    await turns()
    assert upstream.checks == 1
    [line] = [message for message in caplog.messages if "can't check" in message]
    assert line.isprintable()


async def test_a_check_of_another_event_loop_is_left_alone() -> None:
    runtime = runtime_of(server(Stage(upstream=CheckedUpstream())))

    async def listen() -> None:
        runtime.on_listening("127.0.0.1")

    await asyncio.to_thread(asyncio.run, listen())
    await runtime.aclose()


async def test_each_401_has_its_reason_at_debug(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "funcmcp")
    async with client(server(stage)) as http:
        for token in ("damaged", "a.b.c", "x" * 20):
            await http.post("/mcp", json=LIST, headers={"authorization": f"Bearer {token}"})
    lines = [record for record in caplog.records if "is refused with 401" in record.getMessage()]
    assert [line.levelname for line in lines] == ["WARNING", "DEBUG", "DEBUG"]
    assert "damaged" not in caplog.text


async def test_a_program_calls_the_endpoint_with_its_token() -> None:
    stage = Stage(programs={"reports": Program(secret="the-secret-of-reports", scopes=["orders.read"])})
    async with client(server(stage)) as http:
        auth = ("reports", "the-secret-of-reports")
        tokens = (await http.post("/oauth/token", data={"grant_type": "client_credentials"}, auth=auth)).json()
        headers = {"authorization": f"Bearer {tokens['access_token']}"}
        listed = await http.post("/mcp", json=LIST, headers=headers)
        assert listed.status_code == 200
        assert (await http.get("/oauth/userinfo", headers=headers)).status_code == 403


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("POST", "/oauth/token", "authorization"),
        ("POST", "/oauth/revoke", "authorization"),
        ("GET", "/oauth/userinfo", "authorization"),
        ("POST", "/oauth/token", "content-type"),
        ("POST", "/oauth/consent", "origin"),
    ],
)
async def test_a_header_that_came_twice_is_not_read(stage: Stage, method: str, path: str, name: str) -> None:
    """Two programs that read the request could each use a different one."""
    async with client(server(stage)) as http:
        headers = [*FORM.items(), (name, "Basic YTpi"), (name, "Basic Yzpk")]
        answer = await http.request(method, path, headers=headers, content=b"grant_type=x&client_id=y")
        assert answer.status_code == 400
        if path != "/oauth/consent":
            assert answer.json() == {
                "error": "invalid_request",
                "error_description": f"The header {name} came more than once.",
            }
