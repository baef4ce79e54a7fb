"""``funcmcp run --sign-in-as``: the user, where it is refused, and the server that it changes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any

import pytest
import typer

from funcmcp import Auth, HTTPOptions, MCPServer
from funcmcp._auth.principal import Principal
from funcmcp._serving.composition import runtime_of
from funcmcp._serving.local_sign_in import local_user, sign_in_locally
from funcmcp._transports.http.listen_address import ListenAddress
from funcmcp._transports.http.messages import HttpRequest
from funcmcp.auth import OIDC, APIKeys, BearerTokens, GrantProvider, OAuthProxy, ProtectedResource, StaticKeys, first_of
from funcmcp.client import Client, HTTPEndpoint, SignIn
from funcmcp.http import Response, Uploads
from funcmcp.state import MemorySignIns
from funcmcp.testing import allow_sign_in
from funcmcp_cli.commands import _announce, _served_for_user
from funcmcp_cli.failure import Failure
from funcmcp_cli.local_sign_in import claims_of, served_for_user
from funcmcp_cli.served import ServerInFile
from funcmcp_cli.server_options import RunOptions
from tests.auth.making_tokens import public
from tests.cli.processes import FUNCMCP, running

if TYPE_CHECKING:
    from pathlib import Path

URL = "https://orders.example.com/team/mcp"
ORIGIN = "http://127.0.0.1:8000"
LOCAL = ListenAddress("127.0.0.1", 8000)
ADA = {"sub": "ada", "name": "Ada", "email": "ada@example.com", "roles": ["cook"], "org_id": "kitchen"}
SERVER = """
from funcmcp import Context, MCPServer
from funcmcp.auth import OIDC, OAuthProxy

UPSTREAM = OIDC("https://login.example.com", "orders")
mcp = MCPServer("Orders", auth=OAuthProxy("https://orders.example.com/mcp", upstream=UPSTREAM, scopes={"read": "Read"}))


@mcp.tool
def who(context: Context) -> str:
    return f"{context.principal.name} is a {', '.join(context.principal.roles)}"
"""


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("FUNCMCP_PROXIES", "FUNCMCP_ROOT_PATH", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(variable, raising=False)


class LocalRequest(HttpRequest):
    """A request of a program on this machine."""

    @property
    def peer(self) -> str | None:
        return "127.0.0.1"

    @property
    def query_string(self) -> str:
        return ""


async def get(
    mcp: MCPServer, path: str, *fields: tuple[bytes, bytes], host: bytes = b"127.0.0.1:8000"
) -> tuple[int, Any]:
    """Return the status and the text of an answer."""
    request = LocalRequest("GET", path, [(b"host", host), *fields], "127.0.0.1")
    response = await runtime_of(mcp).exchange(request)
    assert isinstance(response.body, bytes)
    return response.status, response.body.decode()


def proxied(**options: Any) -> MCPServer:
    upstream = OIDC("https://login.example.com", "orders")
    proxy = OAuthProxy(URL, upstream=upstream, scopes={"read": "See orders"}, issuer=URL.removesuffix("/mcp"))
    return MCPServer(
        "Orders",
        auth=Auth(proxy, scopes=["read"]),
        http=HTTPOptions(path="/team/mcp", allowed_hosts=["orders.example.com"]),
        **options,
    )


# The user


@pytest.mark.parametrize(
    ("text", "claims"),
    [
        ("ada", {"sub": "ada", "name": "ada"}),
        ("ada@example.com", {"sub": "ada@example.com", "name": "ada@example.com", "email": "ada@example.com"}),
    ],
)
def test_a_name_or_an_address_is_a_user(text: str, claims: dict[str, Any]) -> None:
    assert claims_of(text) == claims


def test_a_file_has_the_claims_of_the_user(tmp_path: Path) -> None:
    file = tmp_path / "ada.json"
    file.write_text(json.dumps(ADA | {"tid": "t"}))
    user = local_user(claims_of(str(file)))
    assert (user.subject, user.name, user.email, user.tenant) == ("ada", "Ada", "ada@example.com", "t")
    assert user.roles == {"cook"}
    assert user.claims["org_id"] == "kitchen"


def test_an_unverified_address_and_one_role_as_a_text() -> None:
    user = local_user(ADA | {"email_verified": False, "roles": "cook"})
    assert user.email is None
    assert (sorted(user.roles), user.claims["email"]) == (["cook"], "ada@example.com")


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"sub": ""},
        {"sub": 7},
        {"sub": None},
        {"sub": "a" * 201},
        {"sub": "a\nb"},
        {"sub": "\x1b[31m"},
        {"sub": "ada", "name": ["Ada"]},
        {"sub": "ada", "roles": {"cook": True}},
        {"sub": "ada", "roles": [1]},
        {"sub": "ada", "roles": ["cook"] * 1001},
        {"sub": "ada", "tid": 3},
    ],
)
def test_claims_that_are_not_valid_are_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="user"):
        local_user(claims)


@pytest.mark.parametrize("content", ["", "[]", "7", '"ada"', "{", '{"sub": "ada", "sub": "bob"}', "[" * 10_000])
def test_a_file_without_claims_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "ada.json"
    file.write_text(content)
    with pytest.raises(ValueError, match="JSON"):
        claims_of(str(file))


def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"nobody\.json can't be read: No such file or directory"):
        claims_of(str(tmp_path / "nobody.json"))
    large = tmp_path / "large.json"
    large.write_bytes(b" " * 300_000)
    with pytest.raises(Failure, match="can't be read"):
        claims_of(str(large))
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(Failure, match="not a regular file"):
        claims_of(str(tmp_path / "pipe.json"))
    with pytest.raises(ValueError, match="Name a user"):
        claims_of(" ")


# Where it is refused


def served(address: ListenAddress = LOCAL, **options: Any) -> object:
    return served_for_user(ServerInFile("server.py"), RunOptions(sign_in_as="ada", **options), address)


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "192.168.1.20", "orders.example.com", "localhost.evil.example", "127.0.0.1.evil.example", ""],
)
def test_an_address_that_others_reach_is_refused(host: str) -> None:
    with pytest.raises(typer.BadParameter, match="this machine only"):
        served(ListenAddress(host, 8000))
    with pytest.raises(typer.BadParameter, match=r"\(FUNCMCP_HOST\)"):
        served(ListenAddress(host, 8000, "FUNCMCP_HOST"))


@pytest.mark.parametrize(
    ("host", "origin"),
    [("127.0.0.1", ORIGIN), ("localhost", "http://localhost:8000"), ("::1", "http://[::1]:8000")],
)
def test_loopback_addresses_are_served(host: str, origin: str) -> None:
    assert getattr(served(ListenAddress(host, 8000)), "origin") == origin  # noqa: B009 - of an object
    assert getattr(served(ListenAddress(host, 8000), tls_cert="c.pem"), "origin") == origin.replace("http:", "https:")  # noqa: B009


def test_a_port_that_is_not_known_and_several_processes_are_refused() -> None:
    with pytest.raises(typer.BadParameter, match="Pass --port 8000"):
        served(ListenAddress("127.0.0.1", 0))
    with pytest.raises(typer.BadParameter, match="Leave out --workers"):
        served(workers=2)
    served(workers=1, reload=True)


@pytest.mark.parametrize("variable", ["FUNCMCP_PROXIES", "FUNCMCP_ROOT_PATH", "LISTEN_FDS"])
def test_a_proxy_in_front_or_a_socket_of_another_program_is_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "0")
    served()
    monkeypatch.setenv(variable, "1")
    with pytest.raises(typer.BadParameter, match=variable):
        served()


@pytest.mark.parametrize(
    "variable",
    [
        "WEBSITE_INSTANCE_ID",
        "FUNCTIONS_CUSTOMHANDLER_PORT",
        "CONTAINER_APP_NAME",
        "KUBERNETES_SERVICE_HOST",
        "K_SERVICE",
        "DYNO",
    ],
)
def test_a_platform_is_refused(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "1")
    with pytest.raises(Failure, match=f"--sign-in-as: .*{variable}"):
        served()
    with pytest.raises(ValueError, match=variable):
        sign_in_locally(runtime_of(proxied()), ADA, ORIGIN)


def test_a_server_that_declares_proxies_or_has_no_auth_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = "from funcmcp import HTTPOptions, MCPServer\nmcp = MCPServer('Orders'{})\n"
    for name, options, reason in (
        ("of_proxies", ", http=HTTPOptions(proxies=1)", "proxies"),
        ("of_all", "", "Orders has no auth="),
    ):
        (tmp_path / f"{name}.py").write_text(code.format(options))
        target = served_for_user(ServerInFile(f"{name}.py"), RunOptions(sign_in_as="ada"), LOCAL)
        with pytest.raises(Failure, match=reason):
            target.load()


def test_a_library_that_is_missing_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "funcmcp_cli.local_sign_in")
    monkeypatch.delitem(sys.modules, "funcmcp._serving.local_sign_in")
    monkeypatch.setitem(sys.modules, "funcmcp._oauth_proxy.local_provider", None)
    with pytest.raises(Failure, match=r'pip install "funcmcp\[auth\]"'):
        _served_for_user(ServerInFile("server.py"), RunOptions(sign_in_as="ada"), LOCAL)


# The server


async def test_the_proxy_is_that_of_the_local_address() -> None:
    mcp = proxied()
    deployed = runtime_of(mcp).proxy
    sign_in_locally(runtime_of(mcp), ADA, ORIGIN)
    status, text = await get(mcp, "/.well-known/oauth-protected-resource/team/mcp")
    metadata = json.loads(text)
    assert (status, metadata["resource"], metadata["authorization_servers"]) == (200, f"{ORIGIN}/team/mcp", [ORIGIN])
    _, text = await get(mcp, "/.well-known/oauth-authorization-server")
    assert json.loads(text)["token_endpoint"] == f"{ORIGIN}/oauth/token"
    assert json.loads(text)["scopes_supported"] == ["read"]
    assert deployed is not None
    assert deployed.callback == "https://orders.example.com/team/oauth/callback"
    assert (await get(mcp, "/team/oauth/keys"))[0] == 404


@pytest.mark.parametrize(
    "path", ["/team/mcp", "/oauth/authorize", "/oauth/keys", "/.well-known/oauth-authorization-server", "/hello"]
)
async def test_nothing_is_answered_under_another_name_or_through_a_tunnel(path: str) -> None:
    mcp = proxied()
    mcp.custom_route("/hello", allow_anonymous=True)(lambda: Response("hello"))
    sign_in_locally(runtime_of(mcp), ADA, ORIGIN)
    assert (await get(mcp, path, host=b"orders.example.com"))[0] == 403
    assert (await get(mcp, path, (b"x-forwarded-for", b"203.0.113.9")))[0] == 403
    assert (await get(mcp, path))[0] != 403


async def test_other_credentials_count_as_before_and_those_of_the_proxy_do_not() -> None:
    upstream = OIDC("https://login.example.com", "orders")
    proxy = OAuthProxy(URL, upstream=upstream, scopes={"read": "See orders"})
    mcp = MCPServer("Orders", auth=first_of(proxy, APIKeys({"robot": "k" * 32})), http=HTTPOptions(path="/team/mcp"))
    mcp.custom_route("/who")(lambda: Response("known"))
    sign_in_locally(runtime_of(mcp), ADA, ORIGIN)
    assert await get(mcp, "/who", (b"x-api-key", b"k" * 32)) == (200, "known")
    token = proxy._settings.tokens.issue(local_user(ADA), "client", ["read"], signed_in=0, now=proxy._settings.clock())
    assert isinstance(await proxy({"authorization": f"Bearer {token}"}), Principal)
    assert (await get(mcp, "/who", (b"authorization", f"Bearer {token}".encode())))[0] == 401


def test_a_server_with_bearer_tokens_gets_a_proxy_with_the_scopes_that_it_knows() -> None:
    bearer = BearerTokens("https://login.example.com", URL, keys=StaticKeys(public()))
    resource = ProtectedResource(
        resource=URL, authorization_servers=["https://login.example.com"], scopes=["read", "email"]
    )
    mcp = MCPServer("Orders", auth=Auth(bearer, resource=resource, scopes=["use"]), http=HTTPOptions(uploads=Uploads()))

    @mcp.tool(scopes=["write"])
    def write() -> None:
        """Write."""

    mcp.custom_route("/report", scopes=["report"])(lambda: Response("report"))
    sign_in_locally(runtime_of(mcp), ADA, ORIGIN)
    proxy = runtime_of(mcp).proxy
    assert proxy is not None
    assert list(proxy.resource.scopes) == ["read", "use", "write", "report"]
    mcp = MCPServer("Orders", auth=APIKeys({"robot": "k" * 32}))
    sign_in_locally(runtime_of(mcp), ADA, ORIGIN)
    proxy = runtime_of(mcp).proxy
    assert proxy is not None
    assert list(proxy.resource.scopes) == ["all"]
    assert proxy._settings.claims.configured == ["org_id"]


def test_accounts_are_connected_at_the_local_address() -> None:
    upstream = OIDC("https://login.example.com", "orders")
    proxy = OAuthProxy(URL, upstream=upstream, scopes={"read": "See orders"}, store=MemorySignIns())
    auth = Auth(proxy, grants=[GrantProvider("github", "client", "secret")])
    mcp = MCPServer("Orders", auth=auth, http=HTTPOptions(path="/team/mcp"))
    mcp.custom_route("/who")(lambda: Response("known"))
    runtime = runtime_of(mcp)
    deployed = [route.path for route in runtime.routes]
    sign_in_locally(runtime, ADA, ORIGIN)
    assert runtime.grants is not None
    assert runtime.grants.redirect_uris == {"github": f"{ORIGIN}/grants/github/callback"}
    assert sorted(route.path for route in runtime.routes) == sorted(deployed)


def test_another_user_has_other_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a client has kept of an earlier start with more roles is worth nothing."""
    monkeypatch.setenv("FUNCMCP_KEYS", "A" * 43)

    def public_key(claims: dict[str, Any], origin: str = ORIGIN) -> str:
        mcp = proxied()
        sign_in_locally(runtime_of(mcp), claims, origin)
        proxy = runtime_of(mcp).proxy
        assert proxy is not None
        return str(proxy._settings.tokens.public_keys[0]["x"])

    deployed = runtime_of(proxied()).proxy
    assert deployed is not None
    keys = [
        public_key(ADA),
        public_key(ADA | {"roles": []}),
        public_key(ADA | {"sub": "bob"}),
        public_key(ADA, "http://127.0.0.1:8001"),
        str(deployed._settings.tokens.public_keys[0]["x"]),
    ]
    assert len(set(keys)) == 5
    assert public_key(dict(reversed(ADA.items()))) == keys[0]


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_a_client_signs_in_and_a_reload_keeps_it_signed_in(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "ada.json").write_text(json.dumps(ADA))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*FUNCMCP, "run", "server.py", "--port", str(port), "--sign-in-as", "ada.json"]
    visits: list[str] = []

    async def browser(address: str) -> None:
        visits.append(address)
        assert set(await allow_sign_in(address)) == {"code", "state", "iss"}

    with running(command, folder=tmp_path) as process:
        url = process.endpoint()
        assert "can sign in as the user of --sign-in-as ada.json" in process.line_with("WARNING: Every program")
        async with Client(HTTPEndpoint(url, sign_in=SignIn(open_browser=browser))) as client:
            assert (await client.call_tool("who", {})).text == "Ada is a cook"
            process.process.send_signal(signal.SIGHUP)
            await asyncio.to_thread(process.line_with, "Reloading because of SIGHUP")
            await asyncio.to_thread(process.line_with, "eload")
            assert (await client.call_tool("who", {})).text == "Ada is a cook"
    assert len(visits) == 1


@pytest.mark.parametrize("is_local", [True, False])
def test_the_command_prints_the_url_for_clients(is_local: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """A client that takes the address at which the server listens can't sign in: its URL is another resource."""
    proxy = OAuthProxy(URL, upstream=OIDC("https://login.example.com", "orders"), scopes={"read": "See orders"})
    mcp = MCPServer("Orders", auth=proxy, http=HTTPOptions(path="/team/mcp"))
    if is_local:
        sign_in_locally(runtime_of(mcp), ADA, ORIGIN)
    _announce(mcp, RunOptions(), LOCAL, ORIGIN, in_this_process=False)
    printed = capsys.readouterr().out
    assert f"Orders is served at {ORIGIN}/team/mcp (Ctrl+C stops it)" in printed
    assert (f"Users sign in for {URL}. Give clients this URL." in printed) is not is_local


def test_the_command_names_a_sign_in_url_without_a_path(capsys: pytest.CaptureFixture[str]) -> None:
    """Clients that get the URL of the host get 404, because the endpoint is below it."""
    for path, is_named in (("/mcp", True), ("/", False)):
        proxy = OAuthProxy(
            "https://orders.example.com",
            upstream=OIDC("https://login.example.com", "orders"),
            scopes={"read": "See orders"},
        )
        mcp = MCPServer("Orders", auth=proxy, http=HTTPOptions(path=path))
        _announce(mcp, RunOptions(), LOCAL, ORIGIN, in_this_process=False)
        printed = capsys.readouterr().out
        assert ("write https://orders.example.com/mcp in the sign-in." in printed) is is_named, path
