"""What OpenSSF Scorecard can see in the files of a repository (github.com/ossf/scorecard/blob/main/docs/checks.md).

Branch-Protection, Code-Review, Contributors, Maintained, CII-Best-Practices, Signed-Releases and Webhooks need GitHub.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
BINARIES = {".a", ".class", ".dll", ".dylib", ".exe", ".jar", ".o", ".pyc", ".pyd", ".so", ".wasm", ".whl"}
UNTRUSTED = re.compile(r"\$\{\{\s*github\.(event\.|head_ref)")
each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)


def read(path: Path) -> dict[str, Any]:
    """Return a YAML file of GitHub."""
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    """Return the jobs of a workflow."""
    found: dict[str, dict[str, Any]] = read(path)["jobs"]
    return found


def commands(path: Path) -> list[str]:
    """Return the commands that a workflow runs."""
    return [step["run"] for job in jobs(path).values() for step in job["steps"] if "run" in step]


@each_workflow
def test_token_permissions(path: Path) -> None:
    """A workflow may read the contents. A job that may do more says so, and for what."""
    assert read(path)["permissions"] == {"contents": "read"}
    granted = re.findall(r"^ +[\w-]+: write\b.*$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert [line for line in granted if not re.search(r": write # \w+", line)] == []


@each_workflow
def test_pinned_dependencies(path: Path) -> None:
    used = re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))
    assert used
    assert [action for action in used if not PINNED.fullmatch(action)] == []


def test_an_action_has_one_version() -> None:
    used = {action for path in WORKFLOWS for action in re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))}
    assert len({action.partition("@")[0] for action in used}) == len(used)


@each_workflow
def test_dangerous_workflow(path: Path) -> None:
    """No workflow runs the code of a pull request with more rights, or puts its texts into commands."""
    text = path.read_text(encoding="utf-8")
    assert "pull_request_target" not in text
    assert "workflow_run" not in text
    assert not UNTRUSTED.search(text)


@each_workflow
def test_workflows_only_call_scripts(path: Path) -> None:
    lines = [line for command in commands(path) for line in command.splitlines()]
    script = re.compile(r"\.ci/run$|make |(python )?scripts/|gh release create ")
    assert [line for line in lines if not script.match(line)] == []
    for name in re.findall(r"scripts/[\w.-]+", "\n".join(lines)):
        assert (ROOT / name).is_file()


def test_ci_tests() -> None:
    text = (GITHUB / "workflows" / "test.yml").read_text(encoding="utf-8")
    assert re.search(r"^on:\n(  .+\n)*  pull_request:$", text, re.MULTILINE)
    assert ".ci/run" in commands(GITHUB / "workflows" / "test.yml")


def test_the_tests_run_on_each_system_and_each_python() -> None:
    matrix = jobs(GITHUB / "workflows" / "test.yml")["platforms"]["strategy"]["matrix"]
    assert [system.partition("-")[0] for system in matrix["system"]] == ["ubuntu", "macos", "windows"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14", "3.14t"]


def test_sast() -> None:
    used = (GITHUB / "workflows" / "analysis.yml").read_text(encoding="utf-8")
    assert "github/codeql-action/init@" in used
    assert "github/codeql-action/analyze@" in used


def test_packaging() -> None:
    """PyPI trusts the workflow of a signed tag, and only the jobs that need more than reading may do more."""
    workflow = GITHUB / "workflows" / "release.yml"
    release = jobs(workflow)
    assert commands(workflow)[:2] == [
        'scripts/verify-tag.sh "$GITHUB_REF_NAME"',
        "make dist",
    ]
    assert "permissions" not in release["build"]
    assert release["publish"]["permissions"] == {"id-token": "write"}
    assert release["publish"]["environment"]["name"] == "pypi"
    assert {"build", "attest"} <= set(release["publish"]["needs"])
    assert not re.search(r"secrets\.|password", workflow.read_text(encoding="utf-8"))


def test_dependency_update_tool() -> None:
    updates = read(GITHUB / "dependabot.yml")["updates"]
    assert {update["package-ecosystem"] for update in updates} == {"github-actions", "npm", "pip"}
    files = {"npm": "package.json", "pip": "pyproject.toml"}
    for update in updates:
        for folder in update.get("directories", ()):
            assert (ROOT / folder.strip("/") / files[update["package-ecosystem"]]).is_file()


def test_security_policy() -> None:
    """It has an address, and says within which time a report is answered and published."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "https://github.com/funcmcp/funcmcp/security/advisories/new" in text
    page = (ROOT / "docs" / "guides" / "security.md").read_text(encoding="utf-8")
    for days in re.findall(r"within (\d+ days)", text):
        assert f"within {days}" in page


def test_license() -> None:
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("MIT License")


def test_fuzzing() -> None:
    """Scorecard looks for an import of atheris."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "fuzz").glob("*.py")]
    assert any(re.search(r"^import atheris$", text, re.MULTILINE) for text in texts)


def test_binary_artifacts() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert [name for name in listed.splitlines() if Path(name).suffix in BINARIES] == []


def test_issue_forms_ask_for_what_a_report_needs() -> None:
    form = read(GITHUB / "ISSUE_TEMPLATE" / "fault.yml")
    required = [field["id"] for field in form["body"] if field.get("validations", {}).get("required")]
    assert required == ["server", "steps", "result", "version"]


def test_badges_are_of_workflows_and_projects_of_this_repository() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    badges = re.findall(r"^\[!\[[^]]+\]\(([^)]+)\)\]\(([^)]+)\)$", readme, re.MULTILINE)
    assert badges
    for picture, link in badges:
        workflow = re.fullmatch(
            r"(https://github\.com/\S+/actions/workflows/([\w.]+))/badge\.svg\?branch=main", picture
        )
        if workflow is None:
            assert picture in {
                "https://img.shields.io/pypi/v/funcmcp",
                "https://img.shields.io/pypi/pyversions/funcmcp",
            }
            assert link == "https://pypi.org/project/funcmcp/"
        else:
            assert (GITHUB / "workflows" / workflow[2]).is_file()
            assert link == workflow[1] == f"https://github.com/funcmcp/funcmcp/actions/workflows/{workflow[2]}"
