"""``funcmcp new --auth entra --database postgres`` with each hosting: the files have a place for each setting."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
import pytest

from funcmcp_cli.new import add_to, create
from tests.cli.forking import funcmcp, running
from tests.cli.processes import FUNCMCP, PYTHON, environment
from tests.cli.test_new import (
    ALL_HOSTINGS,
    CLIENT,
    INITIALIZE,
    PLATFORMS,
    SERVER,
    TENANT,
    WITHOUT_FUNCTIONS,
    files_in,
)
from tests.patience import PATIENCE
from tests.postgres_server import postgres_server
from tests.sockets import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from funcmcp_cli.new import Hosting

_SLOW = pytest.mark.slow("A project is written and tested in processes of its own.")

SETTINGS = {"MCP_URL", "ENTRA_TENANT_ID", "ENTRA_CLIENT_ID", "ENTRA_CLIENT_SECRET", "DATABASE_URL"}


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    parent = Path(tmp_path_factory.mktemp("plain"))
    return {hosting: create(f"order-desk-{hosting}", parent, hosting) for hosting in (*WITHOUT_FUNCTIONS, *PLATFORMS)}


@pytest.fixture(scope="module")
def with_all_options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Projects with a sign-in and a database."""
    parent = Path(tmp_path_factory.mktemp("options"))
    hostings: list[Hosting] = [name for name in (*ALL_HOSTINGS, *PLATFORMS) if name != "triggers"]
    return {hosting: create(f"order-desk-{hosting}", parent, hosting, "entra", "postgres") for hosting in hostings}


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The URL of a server of PostgreSQL."""
    with postgres_server() as server:
        yield server.url


def test_azure_itself_signs_the_users_of_its_triggers_in(tmp_path: Path) -> None:
    done = funcmcp("new", "demo", "--hosting", "triggers", "--auth", "entra", folder=tmp_path)
    assert done.returncode == 1
    assert "With --hosting triggers, Azure does: leave --auth out, and set ENTRA_CLIENT_ID" in done.stderr
    assert list(tmp_path.iterdir()) == []
    folder = create("demo", tmp_path, "triggers")
    assert "azd env set ENTRA_CLIENT_ID" in (folder / "README.md").read_text()


@pytest.mark.parametrize("hosting", [*WITHOUT_FUNCTIONS, *PLATFORMS])
def test_each_hosting_has_a_place_for_the_settings_of_a_sign_in_and_a_database(
    projects: dict[str, Path], with_all_options: dict[str, Path], hosting: str
) -> None:
    folder = with_all_options[hosting]
    added = {"sign_in.py", "database.py", "tests/test_database.py"}
    assert files_in(folder) == files_in(projects[hosting]) | added
    texts = {name: (folder / name).read_text() for name in files_in(folder) if not name.endswith(".py")}
    assert not [name for name, text in texts.items() if "{{" in text.replace("${{", "")]
    for setting in SETTINGS:
        assert [name for name, text in texts.items() if name != "README.md" or f"{setting}=" in text if setting in text]
    plain = [(projects[hosting] / name).read_text() for name in files_in(projects[hosting])]
    assert not [text for text in plain for setting in SETTINGS if setting in text]
    assert texts["requirements.txt"].startswith("funcmcp[auth,postgres]>=")
    assert "psycopg[binary,pool]>=" in texts["requirements.txt"]
    if "Dockerfile" in texts:
        (copied,) = re.findall(r"^COPY (server\.py .*) \./$", texts["Dockerfile"], re.MULTILINE)
        assert {f"!{name}" for name in copied.split()} < set(texts[".dockerignore"].split())
        assert {"server.py", "sign_in.py", "database.py"} <= set(copied.split())


@_SLOW
@pytest.mark.parametrize("hosting", ["docker", "http"])
def test_the_tests_of_a_project_with_a_database_pass(
    with_all_options: dict[str, Path], postgres: str, hosting: str
) -> None:
    command = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio"]
    for variables, summary in (({}, "3 passed, 1 skipped"), ({"DATABASE_URL": postgres}, "4 passed")):
        run = subprocess.run(
            command,
            cwd=with_all_options[hosting],
            env=environment(variables),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        assert summary in run.stdout


@_SLOW
def test_a_server_elsewhere_signs_its_users_in_and_does_not_start_open(
    with_all_options: dict[str, Path], postgres: str
) -> None:
    folder = with_all_options["docker"]
    port = free_port()
    origin = f"http://localhost:{port}"
    address = {"FUNCMCP_HOST": "127.0.0.1", "PORT": str(port)}
    settings = {
        **address,
        "MCP_URL": f"{origin}/mcp",
        "ENTRA_TENANT_ID": TENANT,
        "ENTRA_CLIENT_ID": CLIENT,
        "ENTRA_CLIENT_SECRET": "secret",
        "DATABASE_URL": postgres,
        "FUNCMCP_KEYS": "0" * 43,
    }
    with running([*FUNCMCP, "run", "server.py"], folder=folder, env=settings) as process:
        process.endpoint()
        metadata = httpx2.get(f"{origin}/.well-known/oauth-protected-resource/mcp").json()
        assert (metadata["resource"], metadata["authorization_servers"]) == (f"{origin}/mcp", [origin])
        assert httpx2.post(f"{origin}/mcp", json=INITIALIZE).status_code == 401
        assert httpx2.get(f"{origin}/readyz").status_code == 200
    ended = funcmcp("run", "server.py", folder=folder, env=address)
    assert ended.returncode == 1
    assert "MCP_URL is not set. Without it, everybody could call the tools." in ended.stderr


@_SLOW
@pytest.mark.parametrize("hosting", ["http", "self-hosted"])
def test_the_bicep_of_a_database_passes_its_url_on(with_all_options: dict[str, Path], hosting: str) -> None:
    infra = with_all_options[hosting] / "infra"
    main, app = ((infra / name).read_text() for name in ("main.bicep", "app.bicep"))
    for text in (main, app):
        assert re.search(r"@secure\(\)\n@description\('.*'\)\nparam databaseUrl string\n", text)
    assert "    databaseUrl: databaseUrl\n" in main
    assert "    DATABASE_URL: databaseUrl\n" in app
    parameters = json.loads((infra / "main.parameters.json").read_text())["parameters"]
    assert parameters["databaseUrl"] == {"value": "${DATABASE_URL}"}
    assert "PostgresSignIns" in (with_all_options[hosting] / "sign_in.py").read_text()
    done = funcmcp("doctor", folder=with_all_options[hosting])
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "0 errors, 0 warnings"), done.stdout


def test_a_dot_adds_the_database_to_a_server(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "requirements.txt").write_text("funcmcp\n")
    additions = add_to(tmp_path, "heroku", "entra", "postgres")
    assert {"Procfile", "database.py", "sign_in.py"} <= set(additions.written)
    assert not (tmp_path / "tests").exists()
    assert "Add the database to the server: add_database(mcp), with add_database from database.py." in additions.advice
    assert any(line.startswith("requirements.txt needs funcmcp[auth,postgres]>=") for line in additions.advice)
    (tmp_path / "requirements.txt").write_text(
        "Funcmcp[auth,postgres,redis]==0.1.0  # ours\n-r other.txt\npsycopg[binary,pool]\n"
    )
    additions = add_to(tmp_path, "heroku", "entra", "postgres")
    assert not any(line.startswith("requirements.txt") for line in additions.advice)
    assert additions.advice[-1].endswith("docs/deploy/heroku.md")


def test_each_platform_has_a_page_about_its_deployment(tmp_path: Path) -> None:
    for hosting in (*ALL_HOSTINGS, *PLATFORMS):
        folder = tmp_path / hosting
        folder.mkdir()
        (folder / "server.py").write_text(SERVER)
        page = add_to(folder, hosting).advice[-1].partition("docs/")[2]
        assert not page or (Path("docs") / page).is_file(), (hosting, page)
