"""Print requirements: versions.py lowest | newest | dependencies.

Those of the test environment with other versions than the pinned ones:

``lowest``: each dependency of funcmcp in the lowest version that pyproject.toml allows; test packages as pinned.
``newest``: no version is pinned.

``dependencies``: those of funcmcp and of its extras, as pyproject.toml has them.
"""

import sys
import tomllib
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
COMMAND = tomllib.loads(Path("distributions/funcmcp/pyproject.toml").read_text(encoding="utf-8"))
OURS = {PROJECT["project"]["name"], COMMAND["project"]["name"]}
RELEASED_TOGETHER = {"opentelemetry-sdk": "opentelemetry-api"}
"""Test packages that require one version of a dependency: their own."""
TOO_NEW = frozenset({"azure-functions-durable", "fastapi", "import-linter"})
"""Test packages that require a newer version of a dependency than funcmcp does, and that few tests need."""


def dependencies() -> list[Requirement]:
    """Return the requirements of both distributions and of their extras."""
    listed = chain.from_iterable(
        [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
        for project in (PROJECT["project"], COMMAND["project"])
    )
    return [requirement for requirement in map(Requirement, listed) if requirement.name not in OURS]


def test_packages() -> list[Requirement]:
    """Return the pinned requirements of the tests."""
    return list(map(Requirement, PROJECT["dependency-groups"]["dev"]))


def lowest() -> list[Requirement]:
    """Return dependencies in their lowest versions, and the pinned test packages that are no dependencies."""
    requirements = [requirement for requirement in dependencies() if applies(requirement)]
    versions: dict[str, Version] = {}
    for requirement in requirements:
        bound = next(Version(clause.version) for clause in requirement.specifier if clause.operator == ">=")
        versions[requirement.name] = max(bound, versions.get(requirement.name, bound))
    requirements += [requirement for requirement in test_packages() if requirement.name not in TOO_NEW]
    for requirement in requirements:
        version = versions.get(RELEASED_TOGETHER.get(requirement.name, requirement.name))
        if version is not None:
            requirement.specifier = SpecifierSet(f"=={version}")
    return requirements


def newest() -> list[Requirement]:
    """Return the test packages without their versions."""
    requirements = test_packages()
    for requirement in requirements:
        requirement.specifier = SpecifierSet()
    return requirements


def applies(requirement: Requirement) -> bool:
    """Return whether a requirement is one on this Python and system."""
    return requirement.marker is None or requirement.marker.evaluate()


if __name__ == "__main__":
    chosen = {"lowest": lowest, "newest": newest, "dependencies": dependencies}[sys.argv[1]]()
    sys.stdout.writelines(f"{requirement}\n" for requirement in chosen)
