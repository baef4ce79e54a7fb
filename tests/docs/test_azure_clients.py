"""The page about clients of an app on Azure says what the Bicep files of ``funcmcp new`` write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from funcmcp_cli.new import Access, Database, Hosting, create

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "azure-clients.md").read_text(encoding="utf-8")
PROJECTS: list[tuple[Hosting, Access, Database]] = [
    ("http", "key", "none"),
    ("triggers", "key", "none"),
    ("self-hosted", "key", "none"),
    ("http", "entra", "none"),
    ("self-hosted", "entra", "none"),
    ("http", "key", "postgres"),
    ("triggers", "key", "postgres"),
    ("self-hosted", "entra", "postgres"),
]
HOSTINGS = {"http", "triggers", "self-hosted"}
SETTING = re.compile(r"^\s+((?:AzureWebJobs|AzureFunctionsJobHost__)\w+|[A-Z][A-Z0-9_]+): ", re.MULTILINE)


@pytest.fixture(scope="module")
def bicep(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str], str]:
    """By hosting, sign-in and database, all Bicep files of a project."""
    parent = Path(tmp_path_factory.mktemp("projects"))
    texts: dict[tuple[str, str, str], str] = {}
    for number, (hosting, auth, database) in enumerate(PROJECTS):
        folder = create(f"orders-{number}", parent, hosting, auth, database) / "infra"
        texts[hosting, auth, database] = "\n".join(
            file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.bicep"))
        )
    return texts


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table below a heading, or at the beginning for ""."""
    section = PAGE.partition(f"\n## {heading}\n")[2] if heading else PAGE
    lines = section[section.index("\n| ") :].lstrip("\n").splitlines()
    table = lines[: next(number for number, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table[2:]]


def test_each_setting_of_the_bicep_files_has_a_row_and_each_row_is_set(bicep: dict[tuple[str, str, str], str]) -> None:
    set_by = {project: set(SETTING.findall(text)) for project, text in bicep.items()}
    listed = {row[0].strip("`"): row[1] for row in rows("App settings")}
    assert listed.keys() == set().union(*set_by.values())
    assert len(listed) > 10
    for name, hosting in listed.items():
        named = HOSTINGS if hosting == "all" else set(re.findall(r"`([a-z-]+)`", hosting))
        projects = [project for project, names in set_by.items() if name in names]
        if "--auth entra" in hosting:
            assert {auth for _, auth, _ in projects} == {"entra"}, name
        elif hosting == "`--database postgres`":
            assert projects == [project for project in set_by if project[2] == "postgres"], name
        else:
            assert {hosting for hosting, _, _ in projects} == named, name


def test_each_recipe_has_its_source_and_a_date() -> None:
    recipes = rows("")
    anchors = re.findall(r"\]\(#([a-z-]+)\)", " ".join(row[0] for row in recipes))
    headings = [
        heading.lower().replace(",", "").replace(" ", "-") for heading in re.findall("^## (.*)$", PAGE, re.MULTILINE)
    ]
    assert anchors == headings[: len(anchors)]
    assert headings[len(anchors) :] == ["app-settings"]
    for _, source, date in recipes:
        assert "https://learn.microsoft.com/" in source
        assert re.search(r"20\d\d", date)


def test_the_page_and_the_templates_have_one_client_id_one_endpoint_and_one_bundle(
    bicep: dict[tuple[str, str, str], str],
) -> None:
    (client_id,) = re.findall(r"`([0-9a-f-]{36})`", PAGE)
    assert f"param entraClients string = '{client_id}'" in bicep["triggers", "key", "none"]
    for hosting, endpoint, _ in _endpoints():
        path = endpoint.strip("`").removeprefix("https://NAME.azurewebsites.net")
        assert (
            f"output MCP_URL string = 'https://${{app.outputs.hostName}}{path}'"
            in bicep[hosting.strip("`"), "key", "none"]
        )
    assert "[4.36.0, 5.0.0)" in PAGE
    assert "4.36.0" in (ROOT / "docs" / "guides" / "azure.md").read_text(encoding="utf-8")


def _endpoints() -> list[list[str]]:
    """Return the rows of the table of endpoints."""
    lines = PAGE.partition("| `funcmcp new --hosting` |")[2].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[: len(HOSTINGS)]]
