"""The documentation has a folder for each version, and a switch that leads to the same page of another version."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from starlette.staticfiles import StaticFiles

from scripts.documentation_versions import PYTHON, UNTAGGED, build, commits
from tests.page.browser import Browser, running_browser, serving
from tests.patience import PATIENCE
from tests.requirements import require, require_history

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow("Sphinx builds several versions.")

CONF = 'project = "Shop"\nextensions = ["myst_parser"]\nhtml_theme = "furo"\nhtml_title = "Shop"\n'
SWITCH = """
await page.goto(`${args.url}/index.html`);
await page.waitForURL('**/latest/index.html');
const versions = await page.locator('select option').allInnerTexts();
const problems = await violations(page);
await page.goto(`${args.url}/latest/guides/${args.page}.html`);
await page.locator('select').selectOption('0.2');
await page.waitForURL('**/0.2/**');
return {
  versions, problems, path: new URL(page.url()).pathname, heading: await page.locator('h1').first().innerText(),
  chosen: await page.locator('select').inputValue(),
};
"""


def git(folder: Path, *arguments: str) -> None:
    """Run git in a repository."""
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, timeout=PATIENCE)


def commit(folder: Path, pages: dict[str, str], tag: str) -> None:
    """Write pages of the documentation, and tag their commit."""
    for name, text in pages.items():
        (folder / "docs" / name).write_text(text, encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "--message", tag)
    git(folder, "tag", tag)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with documentation of two versions, and commits after them."""
    folder = tmp_path_factory.mktemp("repository")
    (folder / "docs" / "guides").mkdir(parents=True)
    git(folder, "init", "--quiet")
    index = "# Shop\n\n```{toctree}\n:glob:\n\nguides/*\n```\n"
    commit(folder, {"conf.py": CONF, "index.md": index, "guides/tools.md": "# Tools of 0.2.0\n"}, "v0.2.0")
    commit(folder, {"guides/tools.md": "# Tools of 0.2.10\n"}, "v0.2.10")
    commit(folder, {"guides/tools.md": "# Tools of 0.10.0\n"}, "v0.10.0")
    commit(folder, {"guides/tools.md": "# Tools\n", "guides/new.md": "# New\n"}, "not-a-version")
    return folder


@pytest.fixture(scope="module")
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("Sphinx (scripts/setup-docs.sh)", PYTHON.exists())
    folder = tmp_path_factory.mktemp("site")
    versions = commits(repository)
    build(folder, {version: versions[version] for version in ("latest", "0.10", "0.2")}, repository)
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


def test_the_newest_tag_of_each_version_counts_and_the_newest_version_is_first(repository: Path) -> None:
    versions = commits(repository)
    assert list(versions.items()) == [("latest", "HEAD"), ("0.10", "v0.10.0"), ("0.2", "v0.2.10"), *UNTAGGED.items()]


def test_this_repository_has_the_documentation_of_its_versions() -> None:
    require_history()
    for version, name in commits().items():
        shown = subprocess.run(
            ["git", "cat-file", "-e", f"{name}:docs/conf.py"], cwd=PYTHON.parents[3], check=False, timeout=PATIENCE
        )
        assert shown.returncode == 0, version


@pytest.mark.parametrize(
    ("page", "path", "heading"),
    [("tools", "/0.2/guides/tools.html", "Tools of 0.2.10"), ("new", "/0.2/index.html", "Shop")],
    ids=["same-page", "first-page"],
)
def test_the_switch_leads_to_the_page_of_another_version(
    site: Path, browser: Browser, page: str, path: str, heading: str
) -> None:
    with serving(StaticFiles(directory=site), "") as url:
        shown = browser.play(SWITCH, {"url": url, "page": page})
    assert shown["versions"] == ["latest", "0.10", "0.2"]
    assert (shown["path"], shown["heading"], shown["chosen"]) == (path, heading, "0.2")
    assert [problem for problem in shown["problems"] if "select" in str(problem)] == []
