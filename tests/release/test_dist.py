"""scripts/release.sh makes a release, and its commit gives the same bytes in any folder, umask and time zone."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tomllib
from email.parser import HeaderParser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.release import VERSIONED
from tests.cli.processes import environment
from tests.requirements import require

pytestmark = pytest.mark.slow("Distributions are built twice, and installed.")

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "distributions" / "constraints.txt"
SECONDS = 500
VERSION = "7.8.9"
CHANGELOG = """# Changelog

## [Unreleased]

### Upgrade

- Nothing.

### Added

- A release.
"""
FILES = {
    "SHA256SUMS",
    "constraints.txt",
    "simple/index.html",
    "simple/funcmcp/index.html",
    "simple/funcmcp-slim/index.html",
    *(
        f"{name}-{VERSION}{ending}"
        for name in ("funcmcp", "funcmcp_slim")
        for ending in ("-py3-none-any.whl", ".tar.gz", ".cdx.json")
    ),
}


def clone(source: Path, folder: Path) -> None:
    """Clone a repository, with the environments of this one."""
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", source, folder], check=True, timeout=SECONDS)
    for name in (".venv", ".servers"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".git" / "info" / "exclude").write_text(".venv\n.servers\n", encoding="utf-8")


def run(folder: Path, *command: str, umask: int = 0o022, **variables: str) -> str:
    """Run a program to its end, and return its output."""
    identity = {
        f"GIT_{role}_{name}": "ada@example.com" for role in ("AUTHOR", "COMMITTER") for name in ("NAME", "EMAIL")
    }
    result = subprocess.run(
        command,
        cwd=folder,
        env=environment({**identity, **variables}),
        umask=umask,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of each file of a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Release a version in a clone, and return the clone."""
    require("What checks the distributions (scripts/setup-dist.sh)", (ROOT / ".servers" / "dist" / ".ready").exists())
    folder = tmp_path_factory.mktemp("first") / "clone"
    clone(ROOT, folder)
    (folder / "CHANGELOG.md").write_text(CHANGELOG, encoding="utf-8")
    run(folder, "git", "commit", "--quiet", "--all", "--message", "Write the changelog")
    output = run(folder, "scripts/release.sh", VERSION, "dist", TZ="UTC", LC_ALL="C.UTF-8")
    assert output.endswith(
        f"git tag --sign v{VERSION} --message 'Version {VERSION}' && git push origin main v{VERSION}\n"
    )
    return folder


@pytest.fixture(scope="module")
def built(released: Path) -> Path:
    """Return the folder of the release."""
    return released / "dist"


def test_the_release_is_a_commit_with_the_version_and_its_changes(released: Path) -> None:
    assert run(released, "git", "status", "--porcelain") == ""
    assert run(released, "git", "log", "-1", "--format=%s") == f"Release {VERSION}\n"
    changed = run(released, "git", "show", "--name-only", "--format=").split()
    assert set(changed) == {"CHANGELOG.md", *map(str, VERSIONED)}
    assert run(released, "git", "tag", "--points-at", "HEAD") == ""


@pytest.mark.timeout(3 * SECONDS)
def test_one_commit_gives_the_same_bytes(released: Path, built: Path, tmp_path: Path) -> None:
    other = tmp_path / "another folder" / "funcmcp"
    clone(released, other)
    for script in ("dist.sh", "check-dist.sh"):
        run(other, f"scripts/{script}", "out", umask=0o077, TZ="Pacific/Chatham", LC_ALL="C")
    assert digests(other / "out") == digests(built)


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


def locked(constraints: Path) -> dict[str, set[str]]:
    """Return the pins of a file of constraints, with their hashes."""
    entries = constraints.read_text(encoding="utf-8").replace("\\\n", "").splitlines()
    words = [entry.partition(" --hash=")[::2] for entry in entries]
    return {pin.strip(): set(hashes.replace("--hash=", "").split()) for pin, hashes in words}


def test_each_constraint_has_a_hash_and_the_distributions_have_theirs(built: Path) -> None:
    pins = locked(built / "constraints.txt")
    assert [pin for pin, hashes in pins.items() if not hashes] == []
    sums = digests(built)
    for name in ("funcmcp", "funcmcp_slim"):
        files = [f"{name}-{VERSION}{ending}" for ending in ("-py3-none-any.whl", ".tar.gz")]
        assert pins.pop(f"{canonicalize_name(name)}=={VERSION}") == {f"sha256:{sums[file]}" for file in files}
    assert pins == locked(CONSTRAINTS)


def test_both_wheels_have_the_readme_and_the_licence(built: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    for name in ("funcmcp", "funcmcp_slim"):
        with ZipFile(built / f"{name}-{VERSION}-py3-none-any.whl") as wheel:
            information = f"{name}-{VERSION}.dist-info"
            assert wheel.read(f"{information}/METADATA").decode().endswith(f"\n\n{readme}")
            assert wheel.read(f"{information}/licenses/LICENSE").decode() == licence


def test_the_source_archive_gives_the_same_wheel(built: Path, tmp_path: Path) -> None:
    with tarfile.open(built / f"funcmcp-{VERSION}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / f"funcmcp-{VERSION}"
    epoch = run(built.parent, "git", "log", "-1", "--format=%ct").strip()
    command = (sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", "out")
    run(source, *command, SOURCE_DATE_EPOCH=epoch)
    wheel = f"funcmcp-{VERSION}-py3-none-any.whl"
    assert (source / "out" / wheel).read_bytes() == (built / wheel).read_bytes()


def bill_of_materials(built: Path, name: str) -> dict[str, Any]:
    """Return the CycloneDX document of a distribution."""
    document: dict[str, Any] = json.loads((built / f"{name}-{VERSION}.cdx.json").read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize("name", ["funcmcp", "funcmcp_slim"])
def test_the_bill_of_materials_has_what_the_wheel_requires(built: Path, name: str) -> None:
    document = bill_of_materials(built, name)
    root = document["metadata"]["component"]
    assert (root["name"], root["version"]) == (name.replace("_", "-"), VERSION)
    components = {canonicalize_name(component["name"]): component for component in document["components"]}
    with ZipFile(built / f"{name}-{VERSION}-py3-none-any.whl") as wheel:
        metadata = HeaderParser().parsestr(wheel.read(f"{name}-{VERSION}.dist-info/METADATA").decode())
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
    versions = {pin.partition(" ;")[0] for pin in locked(CONSTRAINTS)}
    components = bill_of_materials(built, "funcmcp")["components"]
    others = [each for each in components if not each["name"].startswith("funcmcp")]
    assert {f"{canonicalize_name(each['name'])}=={each['version']}" for each in others} <= versions


def test_no_path_of_the_machine_is_in_a_bill_of_materials(built: Path) -> None:
    for name in ("funcmcp", "funcmcp_slim"):
        text = json.dumps(bill_of_materials(built, name))
        assert "file:" not in text
        assert str(built.parent) not in text


def test_each_dependency_is_locked_in_a_version_that_it_allows() -> None:
    versions = {(each.name, str(each.specifier).removeprefix("==")) for each in map(Requirement, locked(CONSTRAINTS))}
    for path in ("pyproject.toml", "distributions/funcmcp/pyproject.toml"):
        project = tomllib.loads((ROOT / path).read_text(encoding="utf-8"))["project"]
        lists = [project["dependencies"], *project["optional-dependencies"].values()]
        for requirement in (Requirement(line) for each in lists for line in each):
            if not requirement.name.startswith("funcmcp"):
                allowed = [version for name, version in versions if name == canonicalize_name(requirement.name)]
                assert list(requirement.specifier.filter(allowed)), requirement
