"""The pages of platforms show what ``funcmcp new`` writes. Their commands run here with the variables of the platform.

Containers are replaced by their commands in a folder, and `gcloud` by a program that writes down how it was called.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2 as httpx
import pytest
import yaml

from funcmcp.client import Client
from funcmcp_cli.new import create
from tests.cli import processes
from tests.cli.forking import running
from tests.cli.processes import FUNCMCP, PYTHON, environment, run_to_end
from tests.docs.pages import ROOT, block_of, blocks_of, with_frameworks
from tests.docs.test_deploy import AZ
from tests.patience import PATIENCE
from tests.sockets import free_port

if TYPE_CHECKING:
    from funcmcp_cli.new import Hosting

_SLOW = pytest.mark.slow("Programs start for each case.")

NAME = "order-desk"
SHOWN: list[tuple[str, str, Hosting]] = [
    ("cloud-run.md", "deploy.sh", "cloud-run"),
    ("fly.md", "fly.toml", "fly"),
    ("heroku.md", "Procfile", "heroku"),
    ("heroku.md", ".python-version", "heroku"),
    ("lambda.md", "run.sh", "lambda"),
    ("lambda.md", "template.yaml", "lambda"),
    ("railway.md", "railway.json", "railway"),
    ("render.md", "render.yaml", "render"),
]
PAGES = sorted({page for page, _, _ in SHOWN})
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}
ACCEPT = {"Accept": "application/json, text/event-stream"}
GCLOUD = f"""#!{PYTHON}
import json, pathlib, sys

folder = pathlib.Path(__file__).parent
with open(folder / "calls", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1:3] == ["projects", "describe"]:
    print("123456789012")
if sys.argv[1:3] == ["secrets", "create"]:
    (folder / f"secret-{{sys.argv[3]}}").touch()
if sys.argv[1:3] == ["secrets", "describe"]:
    sys.exit(not (folder / f"secret-{{sys.argv[3]}}").exists())
if sys.argv[1:4] == ["secrets", "versions", "describe"]:
    sys.exit(not (folder / f"secret-{{sys.argv[6]}}").read_text())
if sys.argv[1:4] == ["secrets", "versions", "add"]:
    (folder / f"secret-{{sys.argv[4]}}").write_text(sys.stdin.read())
"""
LAMBDA = """
import json, sys
from server import handler
for event in json.load(sys.stdin):
    print(json.dumps(handler(event, None)))
"""
LAMBDA_NAME = "abc123.execute-api.eu-north-1.amazonaws.com"


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folder of a project for each hosting."""
    hostings = {hosting for _, _, hosting in SHOWN}
    return {hosting: create(NAME, Path(tmp_path_factory.mktemp(hosting)), hosting) for hosting in sorted(hostings)}


def template(folder: Path) -> dict[str, Any]:
    """Return the function of template.yaml, with the arguments of CloudFormation's functions in place of these."""
    document = yaml.safe_load(re.sub(r"!(Ref|Sub|GetAtt) ", "", (folder / "template.yaml").read_text()))
    properties: dict[str, Any] = document["Resources"]["Server"]["Properties"]
    return properties


def container_command(folder: Path) -> list[str]:
    """Return the command of the image, as it runs here."""
    (text,) = re.findall(r"^CMD (\[.*\])$", (folder / "Dockerfile").read_text(), re.MULTILINE)
    command: list[str] = json.loads(text)
    assert command[0] == "funcmcp"
    return [*FUNCMCP, *command[1:]]


def initialize(origin: str, host: str) -> int:
    """Return the status of a first message under a host name."""
    return httpx.post(f"{origin}/mcp", json=INITIALIZE, headers={**ACCEPT, "Host": host}, timeout=PATIENCE).status_code


def health(origin: str, path: str, host: str) -> int:
    return httpx.get(f"{origin}{path}", headers={"Host": host}, timeout=PATIENCE).status_code


@pytest.mark.parametrize(("page", "file", "hosting"), SHOWN, ids=[file for _, file, _ in SHOWN])
def test_a_page_shows_the_file_that_funcmcp_new_writes(
    projects: dict[str, Path], page: str, file: str, hosting: str
) -> None:
    (block,) = [block.code for block in blocks_of(f"deploy/{page}") if block.heading == file]
    assert block == (projects[hosting] / file).read_text()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_the_commands_of_the_readme(projects: dict[str, Path], page: str) -> None:
    """The commands of a page are those that the README of the project has."""
    readme = (projects[page.removesuffix(".md")] / "README.md").read_text()
    commands = [block.code for block in blocks_of(f"deploy/{page}") if block.language == "sh"]
    for line in "".join(commands).splitlines():
        assert line.replace("my-project", "PROJECT") in readme


@pytest.mark.parametrize("page", [*PAGES, "kubernetes.md"])
def test_a_page_names_its_sources_and_their_dates(page: str) -> None:
    text = (ROOT / "docs" / "deploy" / page).read_text()
    table = text.partition("\n## Facts and their sources\n")[2]
    rows = re.findall(r"^\| (.*) \| (.*) \| (.*) \|$", table, re.MULTILINE)[1:]
    assert len(rows) > 2
    for _, source, date in rows:
        assert re.search(r"\]\(https://[\w.-]+/", source)
        assert re.search(r"20\d\d", date)


@_SLOW
@pytest.mark.parametrize(
    ("hosting", "variables", "host"),
    [
        ("fly", {"FLY_APP_NAME": NAME}, f"{NAME}.fly.dev"),
        ("railway", {"RAILWAY_PUBLIC_DOMAIN": f"{NAME}.up.railway.app"}, f"{NAME}.up.railway.app"),
        ("render", {"RENDER_EXTERNAL_HOSTNAME": f"{NAME}.onrender.com"}, f"{NAME}.onrender.com"),
    ],
)
def test_a_container_knows_its_name_on_a_platform_and_answers_its_health_check(
    projects: dict[str, Path], hosting: str, variables: dict[str, str], host: str
) -> None:
    folder = projects[hosting]
    settings: dict[str, str] = {}
    if hosting == "fly":
        document = tomllib.loads((folder / "fly.toml").read_text())
        (check,) = document["http_service"]["checks"]
        path = check["path"]
        assert int(document["env"]["PORT"]) == document["http_service"]["internal_port"]
        settings = {name: value for name, value in document["env"].items() if name != "PORT"}
        stop = int(document["kill_timeout"].removesuffix("s"))
    elif hosting == "railway":
        deploy = json.loads((folder / "railway.json").read_text())["deploy"]
        path, stop = deploy["healthcheckPath"], deploy["drainingSeconds"]
    else:
        (service,) = yaml.safe_load((folder / "render.yaml").read_text())["services"]
        path, stop = service["healthCheckPath"], service["maxShutdownDelaySeconds"]
        settings = {row["key"]: row.get("value", "") for row in service["envVars"]}
        settings["FUNCMCP_KEYS"] = (
            "Zm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm8="  # what Render generates: 32 bytes in base64
        )
    assert stop > int(settings.get("FUNCMCP_DRAIN_SECONDS", 7))
    address = {"FUNCMCP_HOST": "127.0.0.1", "PORT": str(free_port())}
    with running(container_command(folder), folder=folder, env={**settings, **variables, **address}) as server:
        origin = server.endpoint().removesuffix("/mcp")
        assert initialize(origin, host) == 200
        assert initialize(origin, "other.example.com") == 421
        assert health(origin, path, "healthcheck.railway.app") == 200


@_SLOW
def test_cloud_run_gets_a_secret_once_and_the_name_of_the_service(projects: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "gcloud").write_text(GCLOUD)
    (tmp_path / "gcloud").chmod(0o755)
    variables = environment({"PATH": f"{tmp_path}:{environment()['PATH']}"})
    outputs = [
        subprocess.run(
            ["./deploy.sh", "my-project"],
            cwd=projects["cloud-run"],
            env=variables,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        for _ in range(2)
    ]
    host = f"{NAME}-123456789012.europe-north1.run.app"
    assert [output.stdout for output in outputs] == [f"https://{host}/mcp\n"] * 2
    calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    steps = (["secrets", "create"], ["secrets", "versions", "add"], ["secrets", "add-iam-policy-binding"])
    counts = [len([call for call in calls if call[: len(step)] == step]) for step in steps]
    assert counts == [1, 1, 2]  # the last is made again, because an earlier run may have ended before it
    key = (tmp_path / f"secret-{NAME}-funcmcp-keys").read_text()
    assert re.fullmatch(r"[\w-]{43}", key)
    deploy, again = [call for call in calls if call[:2] == ["run", "deploy"]]
    assert deploy == again
    assert deploy[deploy.index("--set-env-vars") + 1] == f"FUNCMCP_ALLOWED_HOSTS={host}"
    assert deploy[deploy.index("--set-secrets") + 1] == f"FUNCMCP_KEYS={NAME}-funcmcp-keys:latest"
    folder = projects["cloud-run"]
    served = {"FUNCMCP_ALLOWED_HOSTS": host, "FUNCMCP_KEYS": key, "FUNCMCP_HOST": "127.0.0.1", "PORT": str(free_port())}
    with running(container_command(folder), folder=folder, env=served) as server:
        assert initialize(server.endpoint().removesuffix("/mcp"), host) == 200


SETTINGS = {
    "MCP_URL": "https://orders.example.com/mcp",
    "ENTRA_TENANT_ID": "tenant",
    "ENTRA_CLIENT_ID": "client",
    "ENTRA_CLIENT_SECRET": "a secret, with 'quotes'",
    "DATABASE_URL": "postgresql://orders:p@ss,word@db.example.com/orders",
}


@_SLOW
def test_cloud_run_gets_the_settings_of_a_sign_in_and_a_database_as_secrets(tmp_path: Path) -> None:
    folder = create(NAME, tmp_path, "cloud-run", "entra", "postgres")
    (tmp_path / "gcloud").write_text(GCLOUD)
    (tmp_path / "gcloud").chmod(0o755)
    path = {"PATH": f"{tmp_path}:{environment()['PATH']}"}
    missing = run_to_end(["./deploy.sh", "my-project"], folder=folder, env=path)
    assert missing.returncode == 1
    assert "Set MCP_URL" in missing.stderr
    done = run_to_end(["./deploy.sh", "my-project"], folder=folder, env={**path, **SETTINGS})
    assert done.returncode == 0, done.stderr
    calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    (deploy,) = [call for call in calls if call[:2] == ["run", "deploy"]]
    secrets = dict(pair.split("=") for pair in deploy[deploy.index("--set-secrets") + 1].split(","))
    assert secrets.keys() == {"FUNCMCP_KEYS", *SETTINGS}
    for setting, value in SETTINGS.items():
        assert (tmp_path / f"secret-{secrets[setting].removesuffix(':latest')}").read_text() == value


@_SLOW
def test_azure_gets_the_settings_of_a_sign_in_and_a_database_as_secrets(tmp_path: Path) -> None:
    folder = create(NAME, tmp_path, "aca", "entra", "postgres")
    (tmp_path / "az").write_text(AZ)
    (tmp_path / "az").chmod(0o755)
    variables = {"PATH": f"{tmp_path}:{environment()['PATH']}", **SETTINGS}
    done = run_to_end(["./deploy.sh", "rg-order-desk"], folder=folder, env=variables)
    assert done.returncode == 0, done.stderr
    calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
    stored = dict(
        call[call.index("--secrets") + 1].split("=", 1)
        for call in calls
        if call[:3] == ["containerapp", "secret", "set"]
    )
    (container,) = yaml.safe_load((tmp_path / "settings").read_text())["properties"]["template"]["containers"]
    names = {row["name"]: row["secretRef"] for row in container["env"] if "secretRef" in row}
    assert names.keys() == {"FUNCMCP_KEYS", *SETTINGS}
    for setting, value in SETTINGS.items():
        assert stored[names[setting]] == value


@pytest.mark.slow("Programs of others start a server.")
def test_honcho_runs_the_procfile_on_the_port_of_the_platform(projects: dict[str, Path]) -> None:
    host = f"{NAME}-1234567890ab.herokuapp.com"
    port = free_port()
    variables = {
        "PORT": str(port),
        "HEROKU_APP_DEFAULT_DOMAIN_NAME": host,
        "PATH": f"{Path(sys.executable).parent}:{environment()['PATH']}",
        "PYTHONUNBUFFERED": "1",
    }
    with processes.running([PYTHON, "-m", "honcho", "start"], folder=projects["heroku"], env=variables) as server:
        server.line_with("is served at")
        assert initialize(f"http://127.0.0.1:{port}", host) == 200
        assert initialize(f"http://127.0.0.1:{port}", "other.herokuapp.com") == 421
        server.process.terminate()
        server.ended()
    procfile = (projects["heroku"] / "Procfile").read_text()
    assert int(procfile.rpartition("--drain ")[2]) < 30


@pytest.mark.slow("Programs of others start a server.")
async def test_the_web_adapters_program_serves_the_function_url(projects: dict[str, Path]) -> None:
    folder = projects["lambda"]
    function = template(folder)
    variables = dict(function["Environment"]["Variables"])
    assert variables["AWS_LWA_INVOKE_MODE"] == "response_stream"
    assert function["FunctionUrlConfig"]["InvokeMode"] == "RESPONSE_STREAM"
    port = free_port()
    settings = {**variables, "FUNCMCP_KEYS": "0" * 43, "PORT": str(port)}
    settings["PATH"] = f"{Path(sys.executable).parent}:{environment()['PATH']}"
    with processes.running([f"./{function['Handler']}"], folder=folder, env=settings) as server:
        assert server.endpoint() == f"http://127.0.0.1:{port}/mcp"
        origin = f"http://127.0.0.1:{port}"
        assert health(origin, variables["AWS_LWA_READINESS_CHECK_PATH"], f"127.0.0.1:{port}") == 200
        assert initialize(origin, "abc.lambda-url.eu-north-1.on.aws") == 200
        async with Client(f"{origin}/mcp") as client:
            assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}


def event(host: str, message: object = None, method: str = "POST") -> dict[str, object]:
    """Return a request as an API Gateway passes it on (payload format 2.0)."""
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "price", "arguments": {"item": "tea"}},
    }
    body = json.dumps(message or call) if method == "POST" else ""
    headers = {"host": host, "content-type": "application/json", "accept": ACCEPT["Accept"]}
    return {
        "version": "2.0",
        "rawPath": "/mcp",
        "rawQueryString": "",
        "headers": {**headers, "content-length": str(len(body))},
        "requestContext": {"http": {"method": method, "path": "/mcp", "sourceIp": "203.0.113.1"}, "stage": "$default"},
        "body": body,
        "isBase64Encoded": False,
    }


def answers(folder: Path, *events: object) -> list[dict[str, Any]]:
    """Pass events to the handler of a program, one after the other, in a process that has Mangum."""
    run = subprocess.run(
        [PYTHON, "-c", LAMBDA],
        cwd=folder,
        env=environment(with_frameworks()),
        input=json.dumps(events),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.slow("Programs of others start a server.")
def test_mangum_serves_one_event_after_another(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(block_of("deploy/lambda.md", "Mangum"))
    responses = answers(tmp_path, event(LAMBDA_NAME), event(LAMBDA_NAME), event("other.example.com"))
    assert [response["statusCode"] for response in responses] == [200, 200, 421]
    assert json.loads(responses[1]["body"])["result"]["content"] == [{"type": "text", "text": "3"}]


PROGRESS = """

from funcmcp import Context


@mcp.tool
async def brew(context: Context) -> str:
    for step in range(3):
        await context.report_progress(step + 1, total=3)
    return "done"
"""


@pytest.mark.slow("Programs of others start a server.")
def test_mangum_sends_events_when_the_call_has_ended_and_refuses_streams(tmp_path: Path) -> None:
    """The events of a call are one complete body, and a client that wants to listen is told that there is no stream."""
    (tmp_path / "server.py").write_text(block_of("deploy/lambda.md", "Mangum") + PROGRESS)
    params = {"name": "brew", "arguments": {}, "_meta": {"progressToken": 1}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    called, listened = answers(tmp_path, event(LAMBDA_NAME, call), event(LAMBDA_NAME, method="GET"))
    assert called["statusCode"] == 200
    assert called["headers"]["content-type"].startswith("text/event-stream")
    assert called["body"].count("notifications/progress") == 3
    assert '"done"' in called["body"]
    assert listened["statusCode"] == 405
