"""``funcmcp new``: each project runs, passes its own tests, and is what Azure and its tools take."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from http.client import HTTPConnection
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2
import pytest

from funcmcp import __version__
from funcmcp.client import Client
from funcmcp_cli.failure import Failure
from funcmcp_cli.new import add_to, create, title_of, versions
from tests.cli import processes
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP, PYTHON, environment
from tests.patience import PATIENCE
from tests.requirements import require
from tests.serving import REPOSITORY
from tests.sockets import free_port

if TYPE_CHECKING:
    from funcmcp_cli.new import Hosting

_SLOW = pytest.mark.slow("A project is written and tested in processes of its own.")

HOSTINGS: tuple[Hosting, ...] = ("http", "triggers", "self-hosted")
WITHOUT_FUNCTIONS: tuple[Hosting, ...] = ("docker", "aca", "kubernetes", "systemd", "none")
ALL_HOSTINGS: tuple[Hosting, ...] = (*HOSTINGS, *WITHOUT_FUNCTIONS)
PLATFORMS: tuple[Hosting, ...] = ("fastapi", "cloud-run", "fly", "heroku", "lambda", "railway", "render")
"""Hostings whose server is that of "docker". `tests.docs.test_hosting` runs what they add."""
PLAIN_FILES = {
    ".gitignore",
    "README.md",
    "pyproject.toml",
    "pytest.ini",
    "requirements-dev.txt",
    "requirements.txt",
    "server.py",
    "tests/test_server.py",
}
CONTAINER_FILES = {".dockerignore", ".github/workflows/ci.yml", "Dockerfile", "compose.yaml"}
ADDED_FILES = CONTAINER_FILES - {".github/workflows/ci.yml"}
"""The files that a server without requirements-dev.txt gets: the workflow would install it."""
FILES_WITHOUT_FUNCTIONS = {
    "docker": PLAIN_FILES | CONTAINER_FILES,
    "none": PLAIN_FILES | CONTAINER_FILES,
    "aca": PLAIN_FILES | CONTAINER_FILES | {"containerapp.yaml", "deploy.sh"},
    "kubernetes": PLAIN_FILES | CONTAINER_FILES | {"kubernetes.yaml"},
    "systemd": PLAIN_FILES | {"server.service"},
    "fastapi": PLAIN_FILES | CONTAINER_FILES | {"main.py"},
    "cloud-run": PLAIN_FILES | CONTAINER_FILES | {"deploy.sh"},
    "fly": PLAIN_FILES | CONTAINER_FILES | {"fly.toml"},
    "heroku": PLAIN_FILES | {"Procfile", ".python-version"},
    "lambda": PLAIN_FILES | {"run.sh", "template.yaml"},
    "railway": PLAIN_FILES | CONTAINER_FILES | {"railway.json"},
    "render": PLAIN_FILES | CONTAINER_FILES | {"render.yaml"},
}
COMMON_FILES = {
    ".funcignore",
    ".gitignore",
    "README.md",
    "azure.yaml",
    "host.json",
    "infra/app.bicep",
    "infra/main.bicep",
    "infra/main.parameters.json",
    "local.settings.json",
    "pytest.ini",
    "requirements-dev.txt",
    "requirements.txt",
    "server.py",
    "tests/test_server.py",
}
HOSTING_FILES = {
    "http": {"function_app.py", "sign_in.py"},
    "triggers": {"function_app.py"},
    "self-hosted": {"sign_in.py"},
}
SIGN_IN_FILES = {"infra/registration.bicep", "infra/credential.bicep", "infra/bicepconfig.json"}
TENANT, CLIENT = "11111111-2222-3333-4444-555555555555", "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
SIGN_IN = {"ENTRA_TENANT_ID": TENANT, "ENTRA_CLIENT_ID": CLIENT}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
}


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    parent = Path(tmp_path_factory.mktemp("projects"))
    return {hosting: create(f"order-desk-{hosting}", parent, hosting) for hosting in (*ALL_HOSTINGS, *PLATFORMS)}


@pytest.fixture(scope="module")
def signing_in(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Projects whose server signs its users in with Microsoft Entra ID."""
    parent = Path(tmp_path_factory.mktemp("signing_in"))
    hostings: tuple[Hosting, ...] = ("http", "self-hosted")
    return {hosting: create(f"order-desk-{hosting}", parent, hosting, "entra") for hosting in hostings}


@pytest.fixture(params=HOSTINGS)
def project(request: pytest.FixtureRequest, projects: dict[str, Path]) -> Path:
    return projects[request.param]


@pytest.fixture(params=ALL_HOSTINGS)
def any_project(request: pytest.FixtureRequest, projects: dict[str, Path]) -> Path:
    return projects[request.param]


def files_in(folder: Path) -> set[str]:
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {name for name in names if "__pycache__" not in name and ".pytest_cache" not in name}


async def add(url: str) -> Any:
    async with Client(url) as client:
        return (await client.call_tool("add", {"a": 1, "b": 2}))["structuredContent"]


def test_the_command_makes_a_project_that_runs_at_once(tmp_path: Path) -> None:
    made = funcmcp("new", "demo", folder=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    install = "pip install -r requirements-dev.txt"
    assert made.stdout == f"Created demo. Next: cd demo && {install} && funcmcp run (see README.md)\n"
    assert files_in(tmp_path / "demo") == COMMON_FILES | HOSTING_FILES["http"]
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]


@pytest.mark.parametrize("hosting", HOSTINGS)
def test_each_hosting_has_its_files(projects: dict[str, Path], hosting: str) -> None:
    assert files_in(projects[hosting]) == COMMON_FILES | HOSTING_FILES[hosting]


async def test_funcmcp_run_answers_a_client(any_project: Path) -> None:
    with running([*FUNCMCP, "run", "--port", "0"], folder=any_project) as process:
        assert await add(process.endpoint()) == {"result": 3}


@_SLOW
def test_its_own_tests_pass(any_project: Path) -> None:
    command = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"]
    run = subprocess.run(
        command, cwd=any_project, env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "3 passed" in run.stdout


@pytest.mark.parametrize("hosting", [*WITHOUT_FUNCTIONS, *PLATFORMS])
def test_a_hosting_without_functions_has_its_files(projects: dict[str, Path], hosting: str) -> None:
    assert files_in(projects[hosting]) == FILES_WITHOUT_FUNCTIONS[hosting]
    for file in [path for path in projects[hosting].rglob("*") if path.is_file() and path.suffix != ".pyc"]:
        assert "{{" not in file.read_text().replace("${{", ""), file


def test_a_script_can_be_run(projects: dict[str, Path]) -> None:
    assert (projects["aca"] / "deploy.sh").stat().st_mode & 0o111
    assert not (projects["aca"] / "containerapp.yaml").stat().st_mode & 0o111


def test_the_workflow_runs_the_tests_and_builds_the_image(projects: dict[str, Path]) -> None:
    folder = projects["none"]
    steps = re.findall(
        r"^(?:- )?run: (.*)$", (folder / ".github/workflows/ci.yml").read_text().replace("      ", ""), re.MULTILINE
    )
    assert steps == ["pip install --requirement requirements-dev.txt", "pytest", "docker build --tag order-desk-none ."]


def test_the_container_copies_files_that_exist_and_is_not_root(projects: dict[str, Path]) -> None:
    folder = projects["none"]
    lines = [
        line.split(" ", 1) for line in (folder / "Dockerfile").read_text().splitlines() if line[:1] not in ("", "#")
    ]
    copied = [text.split()[0] for name, text in lines if name == "COPY" and not text.startswith("--from")]
    assert copied == ["requirements.txt", "server.py"]
    assert (folder / ".dockerignore").read_text().split() == ["*", *(f"!{name}" for name in copied)]
    (final,) = [index for index, line in enumerate(lines) if line == ["WORKDIR", "/app"]]
    assert ["USER", "10001"] in lines[final:]
    assert [name for name, _ in lines][-1] == "CMD"


async def test_the_command_of_the_container_serves_the_host_names_of_the_environment(projects: dict[str, Path]) -> None:
    (text,) = re.findall(r"^CMD (.*)$", (projects["none"] / "Dockerfile").read_text(), re.MULTILINE)
    command = json.loads(text)
    assert command == ["funcmcp", "run", "server.py"]
    variables = {"FUNCMCP_ALLOWED_HOSTS": "shop.example", "FUNCMCP_HOST": "127.0.0.1", "PORT": "0"}
    statuses = {}
    with running([*FUNCMCP, *command[1:]], folder=projects["none"], env=variables) as process:
        address = urlsplit(process.endpoint()).netloc
        for name in ("shop.example", "other.example"):
            connection = HTTPConnection(address, timeout=PATIENCE)
            headers = {
                "Host": name,
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
            }
            connection.request("POST", "/mcp", json.dumps(INITIALIZE), headers)
            statuses[name] = connection.getresponse().status
            connection.close()
    assert statuses["shop.example"] == 200
    assert statuses["other.example"] != 200


@_SLOW
def test_the_doctor_finds_nothing_to_mend(project: Path) -> None:
    done = funcmcp("doctor", folder=project)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "0 errors, 0 warnings"), done.stdout


@_SLOW
async def test_azure_starts_the_self_hosted_project_on_the_port_of_its_choice(projects: dict[str, Path]) -> None:
    folder = projects["self-hosted"]
    handler = json.loads((folder / "host.json").read_text())["customHandler"]["description"]
    assert handler["defaultExecutablePath"] == "python"
    port = free_port()
    settings = {"FUNCTIONS_CUSTOMHANDLER_PORT": str(port), "PYTHONUNBUFFERED": "1"}
    with processes.running([PYTHON, *handler["arguments"]], folder=folder, env=settings) as process:
        assert process.endpoint() == f"http://127.0.0.1:{port}/mcp"
        assert await add(f"http://127.0.0.1:{port}/mcp") == {"result": 3}


@_SLOW
@pytest.mark.parametrize("hosting", ["http", "self-hosted"])
def test_with_an_application_of_entra_callers_must_sign_in(projects: dict[str, Path], hosting: str) -> None:
    settings = {**SIGN_IN, "WEBSITE_HOSTNAME": "localhost:7071"}
    shown = "import server; from funcmcp._serving.composition import runtime_of; r = runtime_of(server.mcp).metadata; "
    shown += "print(r.resource, *r.authorization_servers, *r.scopes)"
    run = subprocess.run(
        [PYTHON, "-c", shown], cwd=projects[hosting], env=environment(settings), capture_output=True, text=True,
        timeout=PATIENCE, check=False,
    )  # fmt: skip
    issuer, scope = f"https://login.microsoftonline.com/{TENANT}/v2.0", f"api://{CLIENT}/user_impersonation"
    assert run.stdout == f"http://localhost:7071/mcp {issuer} {scope}\n", run.stderr
    done = funcmcp("doctor", "--json", folder=projects[hosting], env=settings)
    assert [finding for finding in json.loads(done.stdout) if finding["level"] != "ok"] == []


@_SLOW
@pytest.mark.parametrize("hosting", ["http", "self-hosted"])
def test_a_project_with_a_sign_in_has_its_files_and_no_fault(signing_in: dict[str, Path], hosting: str) -> None:
    folder = signing_in[hosting]
    assert files_in(folder) == COMMON_FILES | HOSTING_FILES[hosting] | SIGN_IN_FILES
    assert not [name for name in files_in(folder) if re.search(r"\{\{|\}\}", (folder / name).read_text())]
    done = funcmcp("doctor", folder=folder)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "0 errors, 0 warnings"), done.stdout
    assert "ok       redirect URI: is in the registration of the infrastructure.\n" in done.stdout


@_SLOW
@pytest.mark.parametrize("hosting", ["http", "self-hosted"])
def test_a_project_with_a_sign_in_starts_and_answers_its_metadata(signing_in: dict[str, Path], hosting: str) -> None:
    port = free_port()
    origin = f"http://localhost:{port}"
    settings = {
        **SIGN_IN,
        "AZURE_CLIENT_ID": CLIENT,
        "WEBSITE_HOSTNAME": f"localhost:{port}",
        "WEBSITE_AUTH_ENCRYPTION_KEY": "ab" * 32,
    }
    with running([*FUNCMCP, "run", "--port", str(port)], folder=signing_in[hosting], env=settings) as process:
        process.endpoint()
        metadata = httpx2.get(f"{origin}/.well-known/oauth-protected-resource/mcp").json()
        assert (metadata["resource"], metadata["authorization_servers"]) == (f"{origin}/mcp", [origin])
        server = httpx2.get(f"{origin}/.well-known/oauth-authorization-server").json()
        assert (server["issuer"], server["scopes_supported"]) == (origin, ["tools"])
        refused = httpx2.post(f"{origin}/mcp", json=INITIALIZE)
        assert refused.status_code == 401
        assert f'{origin}/.well-known/oauth-protected-resource/mcp"' in refused.headers["www-authenticate"]
        client = {"client_name": "Notes", "redirect_uris": ["https://app.example.com/back"]}
        client_id = httpx2.post(f"{origin}/oauth/register", json=client).json()["client_id"]
        query = {
            "client_id": client_id,
            "response_type": "code",
            "code_challenge": "c" * 43,
            "code_challenge_method": "S256",
        }
        page = httpx2.get(f"{origin}/oauth/authorize", params=query).text
        assert f"Use the tools of Order Desk {'Http' if hosting == 'http' else 'Self Hosted'}" in page
        assert "you sign in with Microsoft" in page


def test_a_server_without_its_registration_does_not_start_on_azure(signing_in: dict[str, Path]) -> None:
    done = funcmcp("inspect", ".", folder=signing_in["self-hosted"], env={"WEBSITE_INSTANCE_ID": "1"})
    assert done.returncode == 1
    assert "ENTRA_CLIENT_ID is not set. `azd up` sets it." in done.stderr


def test_an_application_without_its_tenant_stops_the_server(projects: dict[str, Path]) -> None:
    done = funcmcp("inspect", ".", folder=projects["http"], env={"ENTRA_CLIENT_ID": CLIENT})
    assert done.returncode == 1
    assert "The environment variable ENTRA_TENANT_ID is not set." in done.stderr


@pytest.mark.parametrize(
    "name",
    ["", "a", "Demo", "1st", "-a", "a-", "a--b", "a_b", "a.b", "a/b", "../ab", ".", "a b", "ä-desk", "a" * 33, "con"],
)
def test_a_name_that_azure_or_a_machine_would_refuse_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Failure, match="name"):
        create(name, tmp_path, "http")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_there_already_is_left_alone(tmp_path: Path, kind: str) -> None:
    there = tmp_path / "demo"
    there.write_text("mine") if kind == "file" else there.mkdir()
    done = funcmcp("new", "demo", folder=tmp_path)
    assert (done.returncode, done.stderr) == (
        1,
        "demo exists already. Choose another name, or remove it first.\n",
    )
    assert [path.name for path in tmp_path.iterdir()] == ["demo"]
    assert there.read_text() == "mine" if kind == "file" else list(there.iterdir()) == []


def test_a_project_that_can_not_be_written_whole_is_not_there_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = Path.write_text

    def write_text(path: Path, *arguments: Any, **options: Any) -> int:
        if path.name == "requirements.txt":
            raise OSError(28, "No space left on device")
        return writing(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", write_text)
    with pytest.raises(Failure, match="No space left on device"):
        create("demo", tmp_path, "http")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("version", "range_"), [("0.1.0", ">=0.1.0,<0.2"), ("0.12.3", ">=0.12.3,<0.13"), ("1.4.0", ">=1.4.0,<2")]
)
def test_a_project_takes_versions_that_keep_the_promises_of_its_own(version: str, range_: str) -> None:
    assert versions(version) == range_


def test_a_title_is_the_name_for_people() -> None:
    assert title_of("order-desk") == "Order Desk"


def test_requirements_name_this_version_and_the_extras_of_the_hosting(projects: dict[str, Path]) -> None:
    lines = {hosting: (folder / "requirements.txt").read_text() for hosting, folder in projects.items()}
    assert lines == {
        "http": f"funcmcp-slim[azure,auth]{versions(__version__)}\n",
        "triggers": f"funcmcp-slim[azure]{versions(__version__)}\n",
        "self-hosted": f"funcmcp-slim[server,auth]{versions(__version__)}\n",
        **dict.fromkeys((*WITHOUT_FUNCTIONS, *PLATFORMS), f"funcmcp{versions(__version__)}\n"),
        "fastapi": f"funcmcp{versions(__version__)}\nfastapi>=0.115\n",
    }


def test_host_json_has_what_its_hosting_needs(projects: dict[str, Path]) -> None:
    hosts = {hosting: json.loads((projects[hosting] / "host.json").read_text()) for hosting in HOSTINGS}
    assert {host["version"] for host in hosts.values()} == {"2.0"}
    queues = {"maxPollingInterval": "00:00:02", "batchSize": 4, "newBatchThreshold": 2, "maxDequeueCount": 5}
    assert hosts["http"]["extensions"] == {"http": {"routePrefix": ""}, "queues": queues}
    assert hosts["http"]["extensionBundle"] == hosts["triggers"]["extensionBundle"]
    assert hosts["triggers"]["extensionBundle"] == {
        "id": "Microsoft.Azure.Functions.ExtensionBundle",
        "version": "[4.36.0, 5.0.0)",
    }
    assert hosts["triggers"]["extensions"]["mcp"]["serverName"] == "Order Desk Triggers"
    assert hosts["self-hosted"]["configurationProfile"] == "mcp-custom-handler"
    assert hosts["self-hosted"]["customHandler"]["http"] == {"defaultAuthorizationLevel": "function"}


def test_settings_of_the_machine_hold_no_secret_and_stay_there(project: Path) -> None:
    settings = json.loads((project / "local.settings.json").read_text())
    allowed = {"AzureWebJobsStorage", "FUNCTIONS_WORKER_RUNTIME", "AzureWebJobsFeatureFlags"}
    assert set(settings["Values"]) <= allowed
    assert settings["Values"]["AzureWebJobsStorage"] == "UseDevelopmentStorage=true"
    for name in (".gitignore", ".funcignore"):
        assert "local.settings.json" in (project / name).read_text().splitlines()


def test_no_word_of_a_template_is_left(any_project: Path) -> None:
    assert not [name for name in files_in(any_project) if re.search(r"\{\{|\}\}", (any_project / name).read_text())]


def test_azure_yaml_has_one_function_app_that_the_infrastructure_names(project: Path) -> None:
    """The schema of azure.yaml wants a name of this form; azd finds the app by the tag azd-service-name."""
    lines = (project / "azure.yaml").read_text().splitlines()[1:]
    assert lines == [
        f"name: {project.name}",
        "services:",
        "  mcp:",
        "    project: .",
        "    host: function",
        "    language: python",
    ]
    assert re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", project.name)
    assert "'azd-service-name': 'mcp'" in (project / "infra/app.bicep").read_text()


def declared(kind: str, text: str) -> set[str]:
    return set(re.findall(rf"^{kind} (\w+)", text, re.MULTILINE))


@_SLOW
@pytest.mark.parametrize("name", ["main.bicep", "app.bicep"])
def test_bicep_is_parsed(project: Path, name: str) -> None:
    """By an independent parser; Microsoft's compiler is in no package registry."""
    require("pycep-parser", find_spec("pycep"))
    from pycep import BicepParser  # type: ignore[import-not-found,import-untyped,unused-ignore]

    parsed = BicepParser().parse(file_path=project / "infra" / name)
    text = (project / "infra" / name).read_text()
    assert set(parsed["parameters"]) == declared("param", text)
    assert set(parsed["resources"]) == declared("resource", text)


@pytest.mark.parametrize("name", ["main.bicep", "app.bicep"])
def test_all_that_bicep_declares_is_used(project: Path, name: str) -> None:
    text = (project / "infra" / name).read_text()
    code = re.sub(r"^\s*//.*|^@description.*", "", text, flags=re.MULTILINE)
    names = declared("param", text) | declared("var", text)
    assert names
    assert not [name for name in names if len(re.findall(rf"\b{name}\b", code)) < 2]


def test_bicep_files_and_parameters_fit_together(project: Path) -> None:
    main, app = ((project / "infra" / name).read_text() for name in ("main.bicep", "app.bicep"))
    parameters = json.loads((project / "infra/main.parameters.json").read_text())["parameters"]
    assert set(parameters) <= declared("param", main)
    assert set(re.findall(r"^param (\w+) \w+$", main, re.MULTILINE)) <= set(parameters)
    (block,) = re.findall(r"^  params: \{\n(.*?)^  \}", main, re.MULTILINE | re.DOTALL)
    passed = set(re.findall(r"^    (\w+):", block, re.MULTILINE))
    assert passed <= declared("param", app)
    assert set(re.findall(r"^param (\w+) \w+$", app, re.MULTILINE)) <= passed
    assert set(re.findall(r"app\.outputs\.(\w+)", main)) <= declared("output", app)


@_SLOW
@pytest.mark.parametrize("hosting", ["http", "self-hosted"])
def test_the_bicep_of_a_sign_in_is_parsed_and_its_files_fit_together(signing_in: dict[str, Path], hosting: str) -> None:
    require("pycep-parser", find_spec("pycep"))
    from pycep import BicepParser  # type: ignore[import-not-found,import-untyped,unused-ignore]

    folder = signing_in[hosting] / "infra"
    texts = {file.name: file.read_text() for file in folder.glob("*.bicep")}
    assert set(texts) == {"main.bicep", "app.bicep", "registration.bicep", "credential.bicep"}
    for text in texts.values():
        parsed = BicepParser().parse(text=text.replace("\nextension microsoftGraphV1\n", "\n"))
        assert set(parsed.get("parameters", ())) == declared("param", text)
        assert set(parsed["resources"]) == declared("resource", text)
        names = declared("param", text) | declared("var", text)
        code = re.sub(r"^\s*//.*|^@description.*", "", text, flags=re.MULTILINE)
        assert not [name for name in names if len(re.findall(rf"\b{name}\b", code)) < 2]
    main = texts["main.bicep"]
    modules = re.findall(r"^module (\w+) '(.*?)' = \{\n(.*?)^\}", main, re.MULTILINE | re.DOTALL)
    assert [name for name, _, _ in modules] == ["registration", "app", "credential"]
    for name, file, body in modules:
        passed = set(re.findall(r"^    (\w+):", body.partition("params: {\n")[2], re.MULTILINE))
        assert passed <= declared("param", texts[file])
        assert set(re.findall(r"^param (\w+) \w+$", texts[file], re.MULTILINE)) <= passed
        assert set(re.findall(rf"{name}\.outputs\.(\w+)", main)) <= declared("output", texts[file])
    parameters = json.loads((folder / "main.parameters.json").read_text())["parameters"]
    assert set(parameters) <= declared("param", main)
    assert set(re.findall(r"^param (\w+) \w+$", main, re.MULTILINE)) <= set(parameters)


def test_the_registration_has_what_the_sign_in_needs(signing_in: dict[str, Path]) -> None:
    infra = signing_in["http"] / "infra"
    extensions = json.loads((infra / "bicepconfig.json").read_text())["extensions"]
    assert list(extensions) == ["microsoftGraphV1"]
    registration, credential = (infra / "registration.bicep").read_text(), (infra / "credential.bicep").read_text()
    for text in (registration, credential):
        assert "\nextension microsoftGraphV1\n" in text
        assert not re.search(r"passwordCredentials|keyCredentials", text)
    assert re.search(r"web: \{\n    redirectUris: \[\n      'https://\$\{host\}/oauth/callback'\n    \]", registration)
    assert "signInAudience: 'AzureADMyOrg'" in registration
    assert "value: 'access_as_user'" in registration
    assert "'api://AzureADTokenExchange'" in credential
    assert "subject: principalId" in credential
    assert "principalId: app.outputs.principalId" in (infra / "main.bicep").read_text()


def test_the_app_uses_its_identity_and_no_keys(project: Path) -> None:
    app = (project / "infra/app.bicep").read_text()
    assert "allowSharedKeyAccess: false" in app
    assert "DisableLocalAuth: true" in app
    assert "AzureWebJobsStorage__credential: 'managedidentity'" in app
    assert "type: 'UserAssignedIdentity'" in app
    assert "name: 'FC1'" in app
    assert not re.search(r"listKeys|AccountKey|secret|password", app, re.IGNORECASE)


@pytest.mark.parametrize(
    ("hosting", "setting"),
    [
        ("http", "ENTRA_CLIENT_ID: entraClientId"),
        ("self-hosted", "AzureFunctionsJobHost__customHandler__http__defaultAuthorizationLevel: 'anonymous'"),
        ("triggers", "AzureFunctionsJobHost__extensions__mcp__system__webhookAuthorizationLevel: 'Anonymous'"),
    ],
)
def test_the_platform_asks_for_no_key_only_where_callers_sign_in(
    projects: dict[str, Path], hosting: str, setting: str
) -> None:
    main = (projects[hosting] / "infra/main.bicep").read_text()
    (block,) = re.findall(r"= empty\(entraClientId\) \? \{\} : \{\n(.*?)^\}", main, re.MULTILINE | re.DOTALL)
    assert setting in block
    assert main.lower().count("anonymous") == block.lower().count("anonymous")


def test_azure_lets_users_in_through_named_client_applications_only(projects: dict[str, Path]) -> None:
    main, app = ((projects["triggers"] / "infra" / name).read_text() for name in ("main.bicep", "app.bicep"))
    assert "allowedApplications: clients" in app
    assert "clients: split(entraClients, ',')" in main
    assert "unauthenticatedClientAction: 'Return401'" in app


@_SLOW
def test_the_wheels_have_the_files_of_their_packages_and_no_others(tmp_path: Path) -> None:
    require("hatchling", find_spec("hatchling"))
    command = ["scripts/dist.sh", str(tmp_path)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, timeout=PATIENCE)
    assert files_of_wheel(tmp_path, "funcmcp_slim") == files_of_packages("funcmcp")
    assert files_of_wheel(tmp_path, "funcmcp") == files_of_packages("funcmcp_cli", "funcmcp_host")


def files_of_wheel(folder: Path, name: str) -> set[str]:
    (wheel,) = folder.glob(f"{name}-*.whl")
    return {file for file in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in file}


def files_of_packages(*packages: str) -> set[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *(f"src/{name}" for name in packages)]
    listed = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True, timeout=PATIENCE)
    return {file.removeprefix("src/") for file in listed.stdout.split() if (REPOSITORY / file).exists()}


SERVER = """from funcmcp import MCPServer

mcp = MCPServer("Old")


@mcp.tool
def add(a: int, b: int) -> int:
    return a + b
"""


@pytest.mark.parametrize("hosting", ["http", "triggers"])
def test_a_dot_adds_the_files_of_a_hosting_to_a_server(hosting: str, tmp_path: Path) -> None:
    folder = tmp_path / "Old Server!"
    folder.mkdir()
    (folder / "server.py").write_text(SERVER)
    (folder / "README.md").write_text("mine")
    (folder / "requirements.txt").write_text("funcmcp[azure]\n")
    result = funcmcp("new", ".", "--hosting", hosting, folder=folder)
    assert result.returncode == 0, result.stderr
    assert "Not changed: requirements.txt" in result.stdout
    assert "requirements.txt needs funcmcp-slim[azure" in result.stdout
    assert (folder / "README.md").read_text() == "mine"
    assert (folder / "server.py").read_text() == SERVER
    assert (folder / "host.json").is_file()
    assert (folder / "infra" / "main.bicep").is_file()
    assert "name: old-server" in (folder / "azure.yaml").read_text()
    assert not [name for name in ("tests", "pytest.ini", "sign_in.py") if (folder / name).exists()]
    assert not list(folder.glob(".funcmcp-new-*"))
    checked = funcmcp("doctor", str(folder))
    assert "0 errors" in checked.stdout, checked.stdout
    again = funcmcp("new", ".", "--hosting", hosting, folder=folder)
    assert "Added: nothing" in again.stdout


def test_a_dot_adds_the_sign_in_to_a_server(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    result = funcmcp("new", ".", "--auth", "entra", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (
        "Pass the sign-in to the server: MCPServer(..., auth=sign_in()), with sign_in from sign_in.py." in result.stdout
    )
    assert files_in(tmp_path) >= {"sign_in.py", *SIGN_IN_FILES}


def test_a_dot_names_the_module_that_has_to_be_written(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(SERVER)
    result = funcmcp("new", ".", folder=tmp_path)
    assert "function_app.py imports mcp from server.py. Name the module of your server there." in result.stdout


@_SLOW
@pytest.mark.parametrize(
    ("hosting", "files", "advice"),
    [
        ("docker", ADDED_FILES, "Dockerfile and .dockerignore name server.py alone. Name the files of your server"),
        ("kubernetes", {*ADDED_FILES, "kubernetes.yaml"}, "Dockerfile and .dockerignore name server.py alone."),
        ("systemd", {"server.service"}, "server.service runs server.py. Name the file of your server there."),
    ],
)
def test_a_dot_adds_the_files_of_a_platform(hosting: str, files: set[str], advice: str, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(SERVER)
    result = funcmcp("new", ".", "--hosting", hosting, folder=tmp_path)
    assert files_in(tmp_path) == {"main.py", "requirements.txt", ".gitignore", *files}
    assert advice in result.stdout
    assert "doctor" not in result.stdout
    (tmp_path / "requirements-dev.txt").touch()
    funcmcp("new", ".", "--hosting", hosting, folder=tmp_path)
    assert (tmp_path / ".github/workflows/ci.yml").exists() == (hosting != "systemd")


def test_a_dot_needs_a_server_and_a_folder_that_can_be_written(tmp_path: Path) -> None:
    result = funcmcp("new", ".", folder=tmp_path)
    assert "has no Python file. Make a new project: funcmcp new NAME" in result.stderr
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "infra").write_text("a file where a folder has to be")
    result = funcmcp("new", ".", folder=tmp_path)
    assert "cannot be written" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["infra", "server.py"]


def test_a_link_to_nothing_is_a_file_that_new_does_not_replace(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("")
    (tmp_path / "host.json").symlink_to("shared/host.json")
    additions = add_to(tmp_path, "http")
    assert "host.json" in additions.unchanged
    assert (tmp_path / "host.json").is_symlink()


def test_no_file_is_added_through_a_link_that_leads_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    project = tmp_path / "project"
    project.mkdir()
    (project / "server.py").write_text("")
    (project / "infra").symlink_to(tmp_path / "other")
    with pytest.raises(Failure, match="infra is a symbolic link that leads out of"):
        add_to(project, "http")
    assert list((tmp_path / "other").iterdir()) == []
    assert sorted(file.name for file in project.iterdir()) == ["infra", "server.py"]


def test_a_full_disk_is_an_error_without_a_stack_trace(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    (tmp_path / "server.py").write_text("")
    process = subprocess.run(
        [*FUNCMCP, "new", "."],
        cwd=tmp_path,
        env={**environment(), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1
    assert "cannot be written: File too large." in process.stderr
    assert "Traceback" not in process.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["server.py"]


def test_a_dot_names_the_tools_that_the_server_leaves_out(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(f"{SERVER}\n\n@mcp.tool\ndef bad(x: 'Foo') -> str:\n    return x\n")
    result = funcmcp("new", ".", "--hosting", "systemd", folder=tmp_path)
    assert (result.returncode, "server.service" in result.stdout) == (1, True)
    assert result.stderr.startswith("The tool bad is left out of the list. Correct it: ")
