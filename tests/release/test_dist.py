"""scripts/dist.sh and check-dist.sh make the same bytes for one commit in any folder, with any umask and time zone."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tomllib
from email.parser import HeaderParser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from funcmcp import __version__
from tests.cli.processes import environment
from tests.requirements import require

pytestmark = pytest.mark.slow("Distributions are built twice, and installed.")

ROOT = Path(__file__).parents[2]
SECONDS = 500
FILES = {
    "SHA256SUMS",
    "simple/index.html",
    "simple/funcmcp/index.html",
    "simple/funcmcp-slim/index.html",
    *(
        f"{name}-{__version__}{ending}"
        for name in ("funcmcp", "funcmcp_slim")
        for ending in ("-py3-none-any.whl", ".tar.gz", ".cdx.json")
    ),
}


def build(folder: Path, umask: int, variables: dict[str, str]) -> Path:
    """Build the commit in a clone."""
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, folder], check=True, timeout=SECONDS)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    (folder / ".servers").symlink_to(ROOT / ".servers")
    for script in ("dist.sh", "check-dist.sh"):
        result = subprocess.run(
            [f"scripts/{script}", "out"],
            cwd=folder,
            env=environment(variables),
            umask=umask,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
    return folder / "out"


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of each file of a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require("What checks the distributions (scripts/setup-dist.sh)", (ROOT / ".servers" / "dist" / ".ready").exists())
    return build(tmp_path_factory.mktemp("first") / "clone", 0o022, {"TZ": "UTC", "LC_ALL": "C.UTF-8"})


@pytest.mark.timeout(2 * SECONDS)
def test_one_commit_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    other = build(tmp_path / "another folder" / "funcmcp", 0o077, {"TZ": "Pacific/Chatham", "LC_ALL": "C"})
    assert digests(other) == digests(built)


def test_a_release_has_packages_lists_of_dependencies_digests_and_an_index(built: Path) -> None:
    found = digests(built)
    assert found.keys() == FILES
    lines = [line.split("  ") for line in (built / "SHA256SUMS").read_text(encoding="utf-8").splitlines()]
    sums = {name: digest for digest, name in lines}
    assert sums == {name: digest for name, digest in found.items() if "/" not in name and name != "SHA256SUMS"}


def test_pages_of_the_index_have_links_with_digests(built: Path) -> None:
    for project in ("funcmcp", "funcmcp-slim"):
        page = built / "simple" / project / "index.html"
        links = re.findall(r'<a href="([^"#]+)#sha256=(\w+)">([^<]+)</a>', page.read_text(encoding="utf-8"))
        assert len(links) == 2
        for address, digest, name in links:
            file = (page.parent / address).resolve()
            assert (file.parent, file.name) == (built.resolve(), name)
            assert hashlib.sha256(file.read_bytes()).hexdigest() == digest


def bill_of_materials(built: Path, name: str) -> dict[str, Any]:
    """Return the CycloneDX document of a distribution."""
    document: dict[str, Any] = json.loads((built / f"{name}-{__version__}.cdx.json").read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize("name", ["funcmcp", "funcmcp_slim"])
def test_the_bill_of_materials_has_what_the_wheel_requires(built: Path, name: str) -> None:
    document = bill_of_materials(built, name)
    root = document["metadata"]["component"]
    assert (root["name"], root["version"]) == (name.replace("_", "-"), __version__)
    components = {canonicalize_name(component["name"]): component for component in document["components"]}
    with ZipFile(built / f"{name}-{__version__}-py3-none-any.whl") as wheel:
        metadata = HeaderParser().parsestr(wheel.read(f"{name}-{__version__}.dist-info/METADATA").decode())
    requirements = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    required = {
        canonicalize_name(each.name)
        for each in requirements
        if each.marker is None or each.marker.evaluate({"extra": ""})
    }
    assert required <= components.keys()
    references = {component["bom-ref"]: name for name, component in components.items()}
    edges = {each["ref"]: each.get("dependsOn", []) for each in document["dependencies"]}
    assert required <= {references[reference] for reference in edges[root["bom-ref"]]}
    assert all(component["purl"].startswith("pkg:pypi/") for component in components.values())


def test_the_versions_are_the_locked_ones(built: Path) -> None:
    lines = (ROOT / "distributions" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    locked = {line.partition(" ;")[0] for line in lines if not line.startswith("#")}
    components = bill_of_materials(built, "funcmcp")["components"]
    others = [each for each in components if not each["name"].startswith("funcmcp")]
    assert {f"{canonicalize_name(each['name'])}=={each['version']}" for each in others} <= locked


def test_no_path_of_the_machine_is_in_a_bill_of_materials(built: Path) -> None:
    for name in ("funcmcp", "funcmcp_slim"):
        text = json.dumps(bill_of_materials(built, name))
        assert "file:" not in text
        assert str(built.parent) not in text


def test_each_dependency_is_locked_in_a_version_that_it_allows() -> None:
    lines = (ROOT / "distributions" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    locked = [Requirement(line) for line in lines if line and not line.startswith("#")]
    versions = {(each.name, str(each.specifier).removeprefix("==")) for each in locked}
    for path in ("pyproject.toml", "distributions/funcmcp/pyproject.toml"):
        project = tomllib.loads((ROOT / path).read_text(encoding="utf-8"))["project"]
        lists = [project["dependencies"], *project["optional-dependencies"].values()]
        for requirement in (Requirement(line) for each in lists for line in each):
            if not requirement.name.startswith("funcmcp"):
                allowed = [version for name, version in versions if name == canonicalize_name(requirement.name)]
                assert list(requirement.specifier.filter(allowed)), requirement
