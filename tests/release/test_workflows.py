"""The files in .github are valid, and linters of workflows find nothing in them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.processes import environment
from tests.patience import PATIENCE
from tests.requirements import require

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".servers" / "workflows"

pytestmark = pytest.mark.slow("The linters are installed apart from the rest.")


def run(program: str, *arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a linter in a folder."""
    require("Linters of workflows (scripts/setup-workflows.sh)", (TOOLS / ".ready").exists())
    return subprocess.run(
        [TOOLS / "bin" / program, *arguments],
        cwd=folder,
        env=environment({"NO_COLOR": "1"}),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def actionlint(folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Check the workflows of a folder, without programs that a machine may have."""
    files = map(str, (folder / ".github" / "workflows").glob("*.yml"))
    return run("actionlint", "-shellcheck=", "-pyflakes=", *files, folder=folder)


def zizmor(folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Look for weaknesses in the workflows of a folder, without requests to GitHub."""
    return run("zizmor", "--offline", "--persona", "pedantic", str(folder / ".github"), folder=folder)


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Return a folder with a workflow that has an unknown property, an action without a digest, and a text in code."""
    folder = tmp_path / ".github" / "workflows"
    shutil.copytree(ROOT / ".github" / "workflows", folder)
    text = (folder / "test.yml").read_text(encoding="utf-8")
    text = text.replace("${{ matrix.system }}", "${{ matrix.sytem }}", 1)
    text = text.replace("- run: make audit", "- uses: actions/cache@v4\n      - run: echo ${{ github.head_ref }}")
    (folder / "test.yml").write_text(text, encoding="utf-8")
    return tmp_path


def test_actionlint_finds_nothing() -> None:
    result = actionlint()
    assert (result.returncode, result.stdout) == (0, "")


def test_zizmor_finds_nothing() -> None:
    result = zizmor()
    assert result.returncode == 0, result.stdout
    assert "No findings to report" in result.stdout


def test_both_find_what_is_wrong(broken: Path) -> None:
    assert 'property "sytem" is not defined' in actionlint(broken).stdout
    findings = zizmor(broken)
    assert findings.returncode != 0
    assert "error[unpinned-uses]" in findings.stdout
    assert "error[template-injection]" in findings.stdout


@pytest.mark.parametrize(
    ("schema", "pattern"),
    [
        ("vendor.github-workflows", "workflows/*.yml"),
        ("vendor.dependabot", "dependabot.yml"),
        ("vendor.github-issue-forms", "ISSUE_TEMPLATE/f*.yml"),
        ("vendor.github-issue-config", "ISSUE_TEMPLATE/config.yml"),
    ],
)
def test_a_file_fits_its_schema(schema: str, pattern: str) -> None:
    files = [str(path) for path in (ROOT / ".github").glob(pattern)]
    assert files
    result = run("check-jsonschema", "--builtin-schema", schema, *files)
    assert result.returncode == 0, result.stdout
