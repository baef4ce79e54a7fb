"""The pages of docs/deploy show what ``funcmcp new`` writes, and their commands and configurations work.

Containers are replaced by their commands in a folder, systemd by the command of the unit, and `az` by a program that
writes down how it was called. nginx, HAProxy and Caddy are the real ones, without TLS and on other ports.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatch
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import httpx2 as httpx
import pytest
import yaml

from funcmcp.client import Client
from funcmcp_cli.new import create
from tests.cli.forking import running
from tests.cli.processes import FUNCMCP, PYTHON, environment
from tests.docs.pages import block_of, blocks_of
from tests.docs.proxies import caddy, haproxy, nginx, proxied
from tests.patience import PATIENCE
from tests.requirements import require
from tests.sockets import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from funcmcp_cli.new import Hosting
    from tests.cli.processes import Running

NAME = "order-desk"
KEY = "0" * 43
SHOWN: list[tuple[str, str, Hosting, str]] = [
    ("docker.md", "Dockerfile", "docker", "Dockerfile"),
    ("docker.md", "Compose", "docker", "compose.yaml"),
    ("container-apps.md", "deploy.sh", "aca", "deploy.sh"),
    ("container-apps.md", "containerapp.yaml", "aca", "containerapp.yaml"),
    ("kubernetes.md", "kubernetes.yaml", "kubernetes", "kubernetes.yaml"),
    ("systemd.md", "The unit", "systemd", "server.service"),
]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
SERVER = """
import asyncio
import os

from funcmcp import Context, MCPServer

mcp = MCPServer("Shop")
confirmed = asyncio.Event()


@mcp.tool
async def wait(context: Context) -> str:
    await context.report_progress(1, total=2, message="waiting")
    await confirmed.wait()
    return "done"


@mcp.tool
async def confirm() -> str:
    confirmed.set()
    return f"confirmed by {os.getpid()}"
"""
AZ = f"""#!{PYTHON}
import json, pathlib, sys

state = pathlib.Path(__file__).with_name("secret")
with open(pathlib.Path(__file__).with_name("calls"), "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1:4] == ["containerapp", "secret", "set"]:
    state.touch()
if sys.argv[1:4] == ["containerapp", "secret", "show"] and not state.exists():
    sys.exit(1)
if sys.argv[1:3] == ["containerapp", "show"]:
    asks_image = "properties.template.containers[0].image" in sys.argv
    print("registry.azurecr.io/order-desk:1" if asks_image else "order-desk.example.azurecontainerapps.io")
if sys.argv[1:3] == ["containerapp", "update"]:
    settings = pathlib.Path(sys.argv[sys.argv.index("--yaml") + 1])
    pathlib.Path(__file__).with_name("settings").write_text(settings.read_text())
"""


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folder of a project for each hosting."""
    hostings: list[Hosting] = ["docker", "aca", "kubernetes", "systemd"]
    return {hosting: create(NAME, Path(tmp_path_factory.mktemp(hosting)), hosting) for hosting in hostings}


def documents(path: Path) -> dict[str, Any]:
    """Return the documents of a YAML file by their kinds."""
    return {document.get("kind", ""): document for document in yaml.safe_load_all(path.read_text())}


def on_a_free_port(command: list[str]) -> list[str]:
    """Return a command of a container or a unit as it runs here: on a loopback address and a free port."""
    assert Path(command[0]).name == "funcmcp"
    port = command.index("--port") + 1
    local = [*command[1:port], "0", *command[port + 1 :]]
    return [*FUNCMCP, *("127.0.0.1" if word == "0.0.0.0" else word for word in local)]


def status(url: str) -> int:
    with urlopen(url, timeout=PATIENCE) as response:
        return int(response.status)


@pytest.mark.slow("A proxy of others and servers start.")
@pytest.mark.slow("A proxy of others and servers start.")
@pytest.mark.parametrize(("page", "heading", "hosting", "file"), SHOWN, ids=[file for *_, file in SHOWN])
def test_a_page_shows_the_file_that_funcmcp_new_writes(
    projects: dict[str, Path], page: str, heading: str, hosting: str, file: str
) -> None:
    languages = {block.language for block in blocks_of(f"deploy/{page}") if block.heading == heading} - {"sh"}
    (language,) = languages
    assert block_of(f"deploy/{page}", heading, language) == (projects[hosting] / file).read_text()


@pytest.mark.slow("Copies of a server start one after the other, under constant calls.")
def test_the_health_check_of_the_image_succeeds_while_the_server_runs(projects: dict[str, Path]) -> None:
    text = (projects["docker"] / "Dockerfile").read_text()
    (checked,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", text, re.MULTILINE)
    (command,) = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)
    assert "FUNCMCP_HOST=0.0.0.0 PORT=8000" in text
    assert text.count("8000") == 1
    address = {"FUNCMCP_HOST": "127.0.0.1", "PORT": str(free_port())}
    check = [PYTHON, *json.loads(checked)[1:]]
    with running([*FUNCMCP, *json.loads(command)[1:]], folder=projects["docker"], env=address) as server:
        assert server.endpoint() == f"http://127.0.0.1:{address['PORT']}/mcp"
        assert subprocess.run(check, env=environment(address), timeout=PATIENCE, check=False).returncode == 0
    ended = subprocess.run(check, env=environment(address), timeout=PATIENCE, stderr=subprocess.DEVNULL, check=False)
    assert ended.returncode == 1


def test_compose_gives_the_copies_one_key(projects: dict[str, Path]) -> None:
    (service,) = yaml.safe_load((projects["docker"] / "compose.yaml").read_text())["services"].values()
    assert service["environment"]["FUNCMCP_KEYS"].startswith("${FUNCMCP_KEYS:?")
    assert service["ports"] == ["127.0.0.1:8000:8000"]
    assert ".env" in (projects["docker"] / ".gitignore").read_text().split()


def test_the_objects_of_kubernetes_refer_to_each_other(projects: dict[str, Path]) -> None:
    objects = documents(projects["kubernetes"] / "kubernetes.yaml")
    assert set(objects) == {"Deployment", "Service", "PodDisruptionBudget", "HTTPRoute"}
    pod = objects["Deployment"]["spec"]["template"]
    labels = pod["metadata"]["labels"]
    assert objects["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert objects["Service"]["spec"]["selector"] == labels
    assert objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    (container,) = pod["spec"]["containers"]
    (port,) = container["ports"]
    (service_port,) = objects["Service"]["spec"]["ports"]
    assert service_port["targetPort"] == port["name"]
    (rule,) = objects["HTTPRoute"]["spec"]["rules"]
    assert rule["backendRefs"] == [{"name": NAME, "port": service_port["port"]}]
    assert rule["timeouts"] == {"request": "0s"}
    drain = int(container["args"][container["args"].index("--drain") + 1])
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["spec"]["terminationGracePeriodSeconds"] > drain + pause


def test_the_route_belongs_to_the_gateway_of_the_page(projects: dict[str, Path]) -> None:
    route = documents(projects["kubernetes"] / "kubernetes.yaml")["HTTPRoute"]["spec"]
    gateway = yaml.safe_load(block_of("deploy/kubernetes.md", "The Gateway", "yaml"))
    assert route["parentRefs"] == [gateway["metadata"]]
    (listener,) = gateway["spec"]["listeners"]
    assert all(fnmatch(name, listener["hostname"]) for name in route["hostnames"])
    (container,) = documents(projects["kubernetes"] / "kubernetes.yaml")["Deployment"]["spec"]["template"]["spec"][
        "containers"
    ]
    variables = {variable["name"]: variable for variable in container["env"]}
    assert [variables["FUNCMCP_ALLOWED_HOSTS"]["value"]] == route["hostnames"]


async def test_copies_with_one_key_serve_each_others_sessions_and_their_probes(projects: dict[str, Path]) -> None:
    (container,) = documents(projects["kubernetes"] / "kubernetes.yaml")["Deployment"]["spec"]["template"]["spec"][
        "containers"
    ]
    probes = {container[name]["httpGet"]["path"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    command = on_a_free_port(container["args"])
    folder = projects["kubernetes"]
    with (
        running(command, folder=folder, env={"FUNCMCP_KEYS": KEY}) as one,
        running(command, folder=folder, env={"FUNCMCP_KEYS": KEY}) as other,
    ):
        urls = [one.endpoint(), other.endpoint()]
        for url in urls:
            assert {status(url.removesuffix("/mcp") + path) for path in probes} == {200}
        async with httpx.AsyncClient() as client:
            started = await client.post(urls[0], json=INITIALIZE)
            session = {"Mcp-Session-Id": started.headers["mcp-session-id"]}
            listed = await client.post(
                urls[1], json={"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, headers=session
            )
        assert [tool["name"] for tool in listed.json()["result"]["tools"]] == ["add"]


@pytest.mark.slow("Copies of a server start one after the other, under constant calls.")
def test_deploy_sh_makes_one_key_and_prints_the_url(projects: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "az").write_text(AZ)
    (tmp_path / "az").chmod(0o755)
    path = f"{tmp_path}:{environment()['PATH']}"
    for _ in range(2):
        run = subprocess.run(
            ["./deploy.sh", "rg-order-desk"],
            cwd=projects["aca"],
            env=environment({"PATH": path}),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert run.returncode == 0
        assert run.stderr.startswith("Everybody on the internet can call the tools")
        assert run.stdout == "https://order-desk.example.azurecontainerapps.io/mcp\n"
    calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    (secret,) = [call for call in calls if call[:3] == ["containerapp", "secret", "set"]]
    assert re.fullmatch(r"funcmcp-keys=[\w-]{43}", secret[secret.index("--secrets") + 1])
    assert len([call for call in calls if call[:2] == ["containerapp", "up"]]) == 2
    (update, _) = [call for call in calls if call[:2] == ["containerapp", "update"]]
    assert not Path(update[update.index("--yaml") + 1]).exists()
    # Azure replaces the list of containers with this one (JSON merge patch), and refuses a container without an image.
    (container,) = yaml.safe_load((tmp_path / "settings").read_text())["properties"]["template"]["containers"]
    assert container["image"] == "registry.azurecr.io/order-desk:1"


def test_the_container_app_has_time_for_its_calls(projects: dict[str, Path]) -> None:
    template = yaml.safe_load((projects["aca"] / "containerapp.yaml").read_text())["properties"]["template"]
    (container,) = template["containers"]
    variables = {variable["name"]: variable for variable in container["env"]}
    assert variables["FUNCMCP_KEYS"]["secretRef"] == "funcmcp-keys"
    assert template["terminationGracePeriodSeconds"] > int(variables["FUNCMCP_DRAIN_SECONDS"]["value"])


def unit(projects: dict[str, Path]) -> dict[str, str]:
    """Return the settings of the unit of systemd."""
    text = (projects["systemd"] / "server.service").read_text()
    return dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))


@pytest.mark.slow("Copies of a server start one after the other, under constant calls.")
async def test_the_command_of_the_unit_serves_clients(projects: dict[str, Path]) -> None:
    settings = unit(projects)
    command = shlex.split(settings["ExecStart"])
    assert int(settings["TimeoutStopSec"]) > int(command[command.index("--drain") + 1])
    command[command.index(f"/opt/{NAME}/server.py")] = "server.py"
    assert settings["ExecReload"] == "/bin/kill -HUP $MAINPID"
    with running(on_a_free_port(command), folder=projects["systemd"], env={"FUNCMCP_KEYS": KEY}) as server:
        async with Client(server.endpoint()) as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}
            server.process.send_signal(signal.SIGHUP)
            await asyncio.to_thread(server.line_with, "Reloaded")
            assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}


def test_systemd_accepts_the_unit(projects: dict[str, Path], tmp_path: Path) -> None:
    analyze = require("systemd-analyze", shutil.which("systemd-analyze"))
    text = (projects["systemd"] / "server.service").read_text()
    (tmp_path / f"{NAME}.service").write_text(text.replace(f"/opt/{NAME}/.venv/bin/funcmcp", PYTHON))
    run = subprocess.run(
        [analyze, "verify", "--man=no", f"{tmp_path}/{NAME}.service"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert [line for line in run.stderr.splitlines() if NAME in line] == []


def _address_of(name: str | bytes | None, host: str) -> str | bytes | None:
    """Return where a name leads to: the name of a page to this machine."""
    text = name.decode() if isinstance(name, bytes) else name
    return "127.0.0.1" if text == host else name


@pytest.mark.parametrize(
    ("heading", "configure", "url"),
    [
        ("nginx", nginx, "http://shop.example.com/mcp"),
        ("A path prefix", nginx, "http://example.com/shop/mcp"),
        ("HAProxy", haproxy, "http://shop.example.com/mcp"),
        ("Caddy", caddy, "http://shop.example.com/mcp"),
    ],
    ids=["nginx", "nginx at a path", "HAProxy", "Caddy"],
)
async def test_a_proxy_passes_on_the_host_and_sends_events_at_once(
    heading: str, configure: Any, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call ends only after the client has received an event of it and has sent another request."""
    (tmp_path / "server.py").write_text(SERVER)
    block, *_ = blocks_under(heading)
    started = asyncio.Event()
    host = str(urlsplit(url).hostname)
    resolve = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda name, *rest, **options: resolve(_address_of(name, host), *rest, **options)
    )
    port = free_port()
    command = [*FUNCMCP, "run", "server.py", "--port", "0", "--allowed-host", host, "--allowed-host", f"{host}:{port}"]
    with running(command, folder=tmp_path) as server:
        upstream = server.endpoint().removesuffix("/mcp").removeprefix("http://")
        with proxied(configure(block, port, upstream, tmp_path), port, {"HOME": str(tmp_path)}):
            async with Client(url.replace(host, f"{host}:{port}")) as client:
                call = asyncio.create_task(client.call_tool("wait", on_progress=lambda _: started.set()))
                async with asyncio.timeout(PATIENCE):
                    await started.wait()
                    await client.call_tool("confirm")
                    assert (await call).text == "done"


CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "confirm",
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}
CALL_HEADERS = {
    "Host": "shop.example.com",
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Mcp-Name": "confirm",
}


class Caller(threading.Thread):
    """Calls a tool behind a proxy on one connection, until it is stopped."""

    def __init__(self, port: int, stopped: threading.Event) -> None:
        super().__init__(daemon=True)
        self.count = 0
        self.answers: set[str] = set()
        self.failures: list[object] = []
        self._connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._stopped = stopped
        self.start()

    def run(self) -> None:
        while not self._stopped.wait(0.02):
            try:
                self._connection.request("POST", "/mcp", json.dumps(CALL), CALL_HEADERS)
                response = self._connection.getresponse()
                body = response.read()
            except (OSError, HTTPException) as error:
                self.failures.append(repr(error))
                self._connection.close()
            else:
                self.count += 1
                if response.status == 200:
                    self.answers.add(json.loads(body)["result"]["content"][0]["text"])
                else:
                    self.failures.append((response.status, body[:100]))
        self._connection.close()


@contextmanager
def calling(port: int) -> Iterator[list[Caller]]:
    """Call behind a proxy while the block runs."""
    stopped = threading.Event()
    callers = [Caller(port, stopped) for _ in range(4)]
    try:
        yield callers
    finally:
        stopped.set()
        for caller in callers:
            caller.join(PATIENCE)


def wait_for_answer(callers: list[Caller], answer: str) -> None:
    """Wait until a caller has got an answer: the proxy uses the copy that gives it."""
    deadline = time.monotonic() + PATIENCE
    while not any(answer in caller.answers for caller in callers):
        assert time.monotonic() < deadline, f"No caller has got {answer!r}."
        time.sleep(0.05)


def blocks_under(heading: str, page: str = "deploy/proxies.md") -> list[str]:
    return [block.code for block in blocks_of(page) if block.heading == heading]


def nginx_with_copies() -> str:
    (site,), (upstream,) = blocks_under("nginx"), blocks_under("Several copies")
    return upstream + site[site.index("server {\n    listen") :]


def haproxy_with_copies() -> str:
    return blocks_under("HAProxy")[0]


def haproxy_of_health_page() -> str:
    """Return the back end of the other page behind the front end of this one."""
    front_end = (
        haproxy_with_copies().partition("\nbackend shop")[0].replace("default_backend shop", "default_backend orders")
    )
    (back_end,) = blocks_under("HAProxy", "guides/health.md")
    return f"{front_end}\n{back_end}"


def caddy_with_copies() -> str:
    return blocks_under("Caddy")[1]


@pytest.mark.slow("Copies of a server start one after the other, under constant calls.")
@pytest.mark.parametrize(
    ("configuration", "configure", "renewal"),
    [
        (nginx_with_copies, nginx, "restart"),
        (haproxy_with_copies, haproxy, "restart"),
        (haproxy_of_health_page, haproxy, "restart"),
        (caddy_with_copies, caddy, "restart"),
        (caddy_with_copies, caddy, "reload"),
    ],
    ids=["nginx", "HAProxy", "HAProxy of the other page", "Caddy", "Caddy with reloads"],
)
def test_no_call_fails_while_one_copy_after_the_other_is_renewed(
    configuration: Callable[[], str], configure: Any, renewal: str, tmp_path: Path
) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    ports = [free_port(), free_port()]
    other = f"127.0.0.1:{ports[1]}"
    text = configuration().replace("127.0.0.1:8001", other).replace("10.0.0.8:8000", other)
    port = free_port()

    def start(copies: ExitStack, port: int) -> Running:
        command = [*FUNCMCP, "run", "server.py", "--port", str(port), "--allowed-host", "shop.example.com"]
        copy = copies.enter_context(running(command, folder=tmp_path, env={"FUNCMCP_KEYS": KEY}))
        copy.endpoint()
        return copy

    with ExitStack() as copies:
        processes = [start(copies, port) for port in ports]
        command = configure(text, port, f"127.0.0.1:{ports[0]}", tmp_path)
        with proxied(command, port, {"HOME": str(tmp_path)}), calling(port) as callers:
            for process, own_port in zip(processes, ports, strict=True):
                if renewal == "restart":
                    process.process.terminate()
                    assert process.ended() == 0
                    wait_for_answer(callers, f"confirmed by {start(copies, own_port).process.pid}")
                else:
                    process.process.send_signal(signal.SIGHUP)
                    process.line_with("Reloaded")
    assert [caller.failures for caller in callers] == [[]] * len(callers)
    assert min(caller.count for caller in callers) > 0


def test_both_nginx_sites_pass_on_a_large_body_and_the_address_of_the_client() -> None:
    for text in (*blocks_under("nginx"), *blocks_under("A path prefix")):
        assert "client_max_body_size 4m;" in text
        assert text.count("proxy_pass ") == text.count("proxy_set_header X-Forwarded-For $remote_addr;")
