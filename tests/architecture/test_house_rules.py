"""Rules of the project that no linter checks."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.trees import is_written_by_a_script, tree_of
from tests.patience import PATIENCE

pytestmark = pytest.mark.every_python("Each version of Python loads other modules.")

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
MODULES = [path for path in sorted(SOURCE.rglob("*.py")) if not is_written_by_a_script(path)]
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "misc", "manager"}


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_private_packages_have_empty_init_files() -> None:
    public = {SOURCE / "funcmcp" / name for name in ("", "compat", "compat/mcp", "testing")}
    inits = [path for path in MODULES if path.name == "__init__.py" and path.parent not in public]
    assert inits
    assert not [named(path) for path in inits if path.read_text()]


def test_no_module_is_named_after_nothing() -> None:
    assert not [named(path) for path in MODULES if path.stem in FORBIDDEN_NAMES or path.parent.name in FORBIDDEN_NAMES]


def imported(path: Path) -> set[str]:
    """Return the top-level names of what a module imports."""
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


def test_packages_of_azure_are_imported_in_its_adapters_alone() -> None:
    naming = [path for path in MODULES if "azure" in path.read_text()]
    importing = {named(path) for path in naming if imported(path) & {"azure", "azurefunctions"}}
    outside = {name for name in importing if not name.startswith("src/funcmcp/_adapters/azure/")}
    assert outside == {
        "src/funcmcp_host/blob_service.py",
        "src/funcmcp_host/workers/python_main.py",
    }


def loaded(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after running code."""
    script = f"{code}\nimport sys; print(*sys.modules, sep='\\n')"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE)
    return set(run.stdout.split())


FOR_FEW_SERVERS = {
    "funcmcp._text.other_frameworks",
    "funcmcp._adapters.asgi.websocket",
    "funcmcp._auth.authenticator",
    "funcmcp._auth.policy",
    "funcmcp._auth.principal",
    "funcmcp._auth.protected_resource",
    "funcmcp._authoring.calling.uploaded_file",
    "funcmcp._authoring.features.folder_resources",
    "funcmcp._authoring.signatures.docstring",
    "funcmcp._authoring.schemas.handwritten_schema",
    "funcmcp._server.calls.task_call",
    "funcmcp._protocol.completion",
    "funcmcp._server.catalog.task_options",
    "funcmcp._server.handlers.task_calls",
    "funcmcp._server.handlers.tasks",
    "funcmcp._server.tasks.service",
    "funcmcp._state.sessions.memory",
    "funcmcp._state.uploads",
    "funcmcp._state.tasks.any_store",
    "funcmcp._state.tasks.memory",
    "funcmcp._state.tasks.record",
    "funcmcp._state.tasks.store",
    "funcmcp._transports.connection",
    "funcmcp._transports.http.admission.authentication",
    "funcmcp._transports.http.admission.cors",
    "funcmcp._transports.http.endpoints.custom_routes",
    "funcmcp._transports.http.endpoints.http_sse",
    "funcmcp._transports.http.endpoints.uploads",
    "funcmcp._transports.http.endpoints.resource_metadata",
    "funcmcp._transports.websocket",
}
"""Modules that are loaded when a server needs them, so that other servers start sooner."""

SERVER = """
from funcmcp import MCPServer
mcp = MCPServer('m')
@mcp.tool
def add(a: int, b: int) -> int:
    'Add two numbers.'
    return a + b
"""


def test_a_server_with_a_tool_loads_only_what_the_tool_needs() -> None:
    modules = loaded(SERVER)
    assert not modules & {"azure", "httpx2", "jsonschema_rs", "rich", "typer", "uvicorn"}
    assert "funcmcp._serving.composition" in modules
    assert not modules & FOR_FEW_SERVERS


def test_a_command_without_a_server_loads_none() -> None:
    command = """
import sys
from contextlib import suppress
from funcmcp_cli.main import main
sys.argv = ["funcmcp", "new", "--help"]
with suppress(SystemExit):
    main()
"""
    modules = loaded(command)
    assert "funcmcp_cli.commands" in modules
    assert not modules & {"funcmcp._serving.composition", "httpx2", "packaging", "uvicorn"}


def test_a_function_app_without_sign_in_loads_no_authentication() -> None:
    modules = loaded(SERVER + "import funcmcp.azure\napp = funcmcp.azure.http_app(mcp, auth_level='anonymous')\n")
    assert "funcmcp._adapters.azure.http_trigger" in modules
    assert not modules & FOR_FEW_SERVERS


def tracked() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    if listing.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / line for line in listing.stdout.splitlines()]


def test_nothing_names_a_path_of_a_machine() -> None:
    pattern = re.compile(r"(?<![\w.])/(?:wor[k]|roo[t]|tm[p]|hom[e]|far[m])/")
    texts = {path: path.read_bytes() for path in tracked() if path.is_file() and path.stat().st_size < 1_000_000}
    assert texts
    assert not [named(path) for path, text in texts.items() if pattern.search(text.decode("utf-8", "ignore"))]
