"""``funcmcp doctor`` for an app whose tasks a queue trigger runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from funcmcp_cli.doctor import task_checks
from funcmcp_cli.doctor.project import ImportedCode, ImportedServer, Project, Requirement, read_project
from tests.serving import REPOSITORY

if TYPE_CHECKING:
    from funcmcp_cli.doctor.project import Finding

FUNCTIONS = {
    "mcp": [{"type": "httpTrigger", "route": "mcp"}],
    "mcp_preflight": [{"type": "httpTrigger", "route": "mcp"}],
    "mcp_tasks": [{"type": "queueTrigger", "queueName": "q", "connection": "AzureWebJobsStorage"}],
    "other": [{"type": "queueTrigger", "queueName": "other", "connection": "Other"}],
}
HOST = {
    "version": "2.0",
    "extensionBundle": {},
    "extensions": {"queues": {"maxPollingInterval": "00:00:02"}},
    "functionTimeout": "00:30:00",
}
SETTINGS = {"AzureWebJobsStorage": "UseDevelopmentStorage=true"}
FUNCMCP = {"funcmcp": Requirement(frozenset({"azure", "azure-tasks"}), ">=0.1")}


def project(**changes: Any) -> Project:
    functions = changes.pop("functions", FUNCTIONS)
    server = ImportedServer("m", "/mcp", False, False, changes.pop("longest_run", 600.0))
    host = {**HOST, **changes.pop("host", {})}
    documents = {"host.json": host, "local.settings.json": {"Values": changes.pop("settings", SETTINGS)}}
    code = ImportedCode(has_app=True, functions=functions, servers=[server])
    requirements = changes.pop("requirements", FUNCMCP)
    return Project(changes.pop("folder", Path("nowhere")), documents, {}, requirements, Path("function_app.py"), code)


def findings(checked: Project) -> list[Finding]:
    checks = (
        task_checks.check_packages,
        task_checks.check_queues,
        task_checks.check_time_limit,
        task_checks.check_connection,
    )
    return [finding for check in checks for finding in check(checked)]


def faults(checked: Project) -> list[tuple[str, str]]:
    return [(finding.level, finding.subject) for finding in findings(checked) if finding.level != "ok"]


def test_a_good_project_has_no_fault() -> None:
    assert [str(finding.subject) for finding in findings(project())] == ["queues", "functionTimeout"]
    assert faults(project()) == []


def test_an_app_without_tasks_is_not_looked_at() -> None:
    functions = {name: bindings for name, bindings in FUNCTIONS.items() if name != "mcp_tasks"}
    assert findings(project(functions=functions, host={"extensionBundle": None}, settings={}, requirements=None)) == []


@pytest.mark.parametrize(
    ("changes", "level", "subject", "text"),
    [
        ({"host": {"extensionBundle": None}}, "error", "extensionBundle", "A queue trigger needs"),
        ({"host": {"extensions": {}}}, "warning", "maxPollingInterval", "up to 60 seconds"),
        (
            {"host": {"extensions": {"Queues": {"MaxPollingInterval": "00:01:30"}}}},
            "warning",
            "maxPollingInterval",
            "90",
        ),
        ({"host": {"extensions": {"queues": {"maxPollingInterval": 2}}}}, "error", "maxPollingInterval", "is 2"),
        ({"host": {"functionTimeout": "00:05:00"}}, "warning", "functionTimeout", "is 300 seconds, but a run of a"),
        ({"host": {"functionTimeout": None}, "longest_run": 3600.0}, "warning", "functionTimeout", "by default (300"),
        ({"host": {"functionTimeout": "soon"}}, "error", "functionTimeout", "is 'soon'"),
        ({"settings": {}}, "warning", "AzureWebJobsStorage", "is not set in local.settings.json"),
        (
            {"requirements": {"funcmcp": Requirement(frozenset({"azure"}), "")}},
            "error",
            "requirements.txt",
            "funcmcp-slim[azure,azure-tasks]",
        ),
    ],
)
def test_a_fault_is_found_and_nothing_else(changes: dict[str, Any], level: str, subject: str, text: str) -> None:
    faulty = project(**changes)
    assert faults(faulty) == [(level, subject)]
    assert text in next(finding.text for finding in findings(faulty) if finding.level != "ok")


@pytest.mark.parametrize(
    "changes",
    [
        {"host": {"functionTimeout": "-1"}, "longest_run": 604_800.0},
        {"host": {"functionTimeout": "7.00:00:00"}, "longest_run": 604_800.0},
        {"host": {"functionTimeout": None}, "longest_run": 1800.0},
        {"longest_run": None},
        {"settings": {"AzureWebJobsStorage__accountName": "shop"}},
        {"settings": {"AzureWebJobsStorage__queueServiceUri": "https://shop.queue.core.windows.net"}},
        {
            "requirements": {
                "funcmcp": Requirement(frozenset(), ""),
                "azure-storage-queue": Requirement(frozenset(), ""),
            }
        },
        {"requirements": {}},
    ],
)
def test_what_works_is_not_a_fault(changes: dict[str, Any]) -> None:
    assert faults(project(**changes)) == []


def test_an_identity_needs_azure_identity(tmp_path: Path) -> None:
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra/app.bicep").write_text("AzureWebJobsStorage__credential: 'managedidentity'")
    assert faults(project(folder=tmp_path)) == [("error", "requirements.txt")]
    installed = {**FUNCMCP, "azure-identity": Requirement(frozenset(), "")}
    assert faults(project(folder=tmp_path, requirements=installed)) == []


def test_the_sample_has_no_fault() -> None:
    sample = read_project(REPOSITORY / "samples/azure/tasks")
    assert [server.longest_run for server in sample.code.servers] == [1200.0]
    assert [trigger["connection"] for trigger in sample.task_triggers] == ["AzureWebJobsStorage"]
    assert faults(sample) == []
