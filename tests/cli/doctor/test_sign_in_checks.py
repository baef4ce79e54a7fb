"""``funcmcp doctor`` for a server that signs its users in."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp_cli.doctor.examine import examine
from funcmcp_cli.doctor.project import ImportedCode, ImportedServer, Project, SignIn
from funcmcp_cli.doctor.sign_in_checks import check_sign_in, values_of_deployment
from funcmcp_cli.new import create

if TYPE_CHECKING:
    from pathlib import Path

    from funcmcp_cli.doctor.project import Finding

FUNCTIONS = {
    "mcp": [{"type": "httpTrigger", "route": "mcp", "authLevel": "anonymous"}],
    "mcp_preflight": [{"type": "httpTrigger", "route": "mcp"}],
}
OF_APP = {"url": "http://localhost:7071/mcp", "callback": "http://localhost:7071/oauth/callback", "is_of_app": True}
REGISTRATION = """
resource application 'Microsoft.Graph/applications@v1.0' = {
  web: {
    redirectUris: [
      'https://${host}/oauth/callback'
    ]
  }
}
"""
ELSEWHERE = {"url": "https://mcp.example.com/mcp", "callback": "https://mcp.example.com/oauth/callback"}


def project(folder: Path, *, bicep: str = REGISTRATION, env: str = "", **changes: Any) -> Project:
    (folder / "infra").mkdir(exist_ok=True)
    (folder / "infra" / "main.bicep").write_text(bicep)
    if env:
        (folder / ".azure" / "dev").mkdir(parents=True)
        (folder / ".azure" / "config.json").write_text('{"version": 1, "defaultEnvironment": "dev"}')
        (folder / ".azure" / "dev" / ".env").write_text(env)
    host = changes.pop("host", {})
    usual: dict[str, Any] = {
        "upstream": "Microsoft",
        "on_behalf_of": None,
        "is_of_app": False,
        "has_shared_keys": True,
        "unknown_scopes": {},
    }
    sign_in = SignIn(**{**usual, **OF_APP, **changes})
    server = ImportedServer("Orders", "/mcp", has_auth=True, keeps_sessions=False, sign_in=sign_in)
    functions = {} if "customHandler" in host else FUNCTIONS
    code = ImportedCode(has_app=True, functions=functions, servers=[server])
    return Project(folder, {"host.json": host}, {}, None, folder / "function_app.py", code)


def faults(checked: Project) -> list[Finding]:
    return [finding for finding in check_sign_in(checked) if finding.level != "ok"]


def test_a_good_sign_in_has_no_fault(tmp_path: Path) -> None:
    assert [(finding.level, finding.subject) for finding in check_sign_in(project(tmp_path))] == [
        ("ok", "sign-in"),
        ("ok", "redirect URI"),
        ("ok", "keys"),
    ]


@pytest.mark.parametrize(
    ("changes", "level", "subject", "text"),
    [
        ({"url": "http://localhost:7071/api/mcp"}, "error", "sign-in", "but the path of the endpoint is /mcp"),
        ({"url": "http://127.0.0.1:8000/mcp", "is_of_app": False}, "error", "sign-in", "which is on this machine"),
        (
            {**ELSEWHERE, "is_of_app": False, "env": 'MCP_URL="https://a.example.com/mcp"\n'},
            "warning",
            "sign-in",
            "but azd deployed https://a.example.com/mcp",
        ),
        (
            {"bicep": "param a string"},
            "warning",
            "redirect URI",
            "Register https://<host of the app>",
        ),
        ({"bicep": REGISTRATION.replace("/oauth/", "/")}, "error", "redirect URI", "is not in the registration"),
        ({"bicep": REGISTRATION.replace("web:", "spa:")}, "error", "redirect URI", "is registered for spa"),
        ({"unknown_scopes": {"a.b": "one, two"}}, "error", "scope a.b", "is required by one, two, and the OAuthProxy"),
        ({"on_behalf_of": "access_as_user"}, "error", "scope access_as_user", "does not expose it"),
        ({"has_shared_keys": False}, "error", "keys", "Leave out keys="),
        ({"bicep": f"{REGISTRATION}\n managedEnvironmentId: id"}, "error", "keys", "Add the setting FUNCMCP_KEYS"),
        ({"bicep": f"{REGISTRATION}\n platformSignIn: id"}, "error", "authsettingsV2", "a sign-in of its own"),
        ({"bicep": f"{REGISTRATION}\n requireAuthentication: true"}, "error", "authsettingsV2", "Switch App Service"),
        ({"host": {"customHandler": {}}}, "error", "defaultAuthorizationLevel", "requires a key"),
    ],
)
def test_a_fault_is_found_and_nothing_else(
    tmp_path: Path, *, changes: dict[str, Any], level: str, subject: str, text: str
) -> None:
    (fault,) = faults(project(tmp_path, **changes))
    assert (fault.level, fault.subject) == (level, subject)
    assert text in fault.text


@pytest.mark.parametrize(
    "changes",
    [
        {**ELSEWHERE, "is_of_app": False},
        {**ELSEWHERE, "is_of_app": False, "env": "MCP_HOST='mcp.example.com'\nMCP_URL=https://mcp.example.com/mcp\n"},
        {"bicep": f"{REGISTRATION}\n managedEnvironmentId: id\n FUNCMCP_KEYS: keys"},
        {"bicep": f"{REGISTRATION}\n// platformSignIn: id"},
        {"host": {"customHandler": {"http": {"defaultAuthorizationLevel": "anonymous"}}}},
    ],
)
def test_what_works_is_not_a_fault(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert faults(project(tmp_path, **changes)) == []


def test_the_values_are_those_of_the_azd_environment_or_zeros(tmp_path: Path) -> None:
    bicep = f"{REGISTRATION}\n ENTRA_CLIENT_ID: id\n ENTRA_TENANT_ID: id"
    project(tmp_path, bicep=bicep, env='ENTRA_CLIENT_ID="11111111-2222-3333-4444-555555555555"\n# no line\n')
    assert values_of_deployment(tmp_path) == {
        "ENTRA_CLIENT_ID": "11111111-2222-3333-4444-555555555555",
        "ENTRA_TENANT_ID": "00000000-0000-0000-0000-000000000000",
    }
    (tmp_path / ".azure" / "config.json").write_text("[]")
    assert set(values_of_deployment(tmp_path).values()) == {"00000000-0000-0000-0000-000000000000"}
    (tmp_path / ".azure" / "config.json").write_text("{")
    assert set(values_of_deployment(tmp_path).values()) == {"00000000-0000-0000-0000-000000000000"}
    (tmp_path / "infra" / "main.bicep").unlink()
    assert values_of_deployment(tmp_path) == {}


def test_the_code_of_a_project_is_examined_as_it_runs_on_azure(tmp_path: Path) -> None:
    folder = create("orders", tmp_path, "http", "entra")
    sign_in = folder / "sign_in.py"
    text = sign_in.read_text()
    proxy = "OAuthProxy(url, upstream=upstream"
    assert proxy in text
    text = text.replace(proxy, 'OAuthProxy("https://mcp.example.com/mcp", keys=KeyRing(), upstream=upstream')
    sign_in.write_text(text.replace("import os\n", "import os\n\nfrom funcmcp.state import KeyRing\n"))
    server = folder / "server.py"
    server.write_text(server.read_text().replace("read_only=True", 'read_only=True, scopes=["orders.read"]'))
    shutil.rmtree(folder / "infra")
    shutil.copytree(create("copy", tmp_path, "http", "entra") / "infra", folder / "infra")
    found = [(finding.level, finding.subject) for finding in examine(folder) if finding.level != "ok"]
    assert found == [("error", "scope orders.read"), ("error", "keys")]


def test_a_route_prefix_hides_the_sign_in_from_clients(tmp_path: Path) -> None:
    folder = create("orders", tmp_path, "http", "entra")
    (folder / "host.json").write_text('{"version": "2.0"}')
    code = [finding.text for finding in examine(folder) if finding.subject == "the code"]
    assert "Clients look for the sign-in at the root of the host" in code[0]
