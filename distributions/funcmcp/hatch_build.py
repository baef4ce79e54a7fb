"""Puts files of the repository into this distribution: the two packages, and the README.

A source archive contains them, so a build from one needs nothing else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PACKAGES = ("funcmcp_cli", "funcmcp_host")
README = "README.md"


def repository(folder: str) -> Path:
    """Return the folder with the packages and the README: the one of a source archive, or that of the checkout.

    Raises:
        FileNotFoundError: This folder was copied without the rest of its repository.
    """
    for candidate in (Path(folder), Path(folder).resolve().parents[1]):
        if all((candidate / "src" / package).is_dir() for package in PACKAGES):
            return candidate
    message = (
        f"{folder} lacks src/{PACKAGES[0]}. Build this distribution in a checkout of the whole repository, or from its "
        "source archive."
    )
    raise FileNotFoundError(message)


class ReadmeHook(MetadataHookInterface):
    """Sets the README, which the project page of the distribution shows."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README to the metadata."""
        text = (repository(self.root) / README).read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class PackagesHook(BuildHookInterface[Any]):
    """Includes the packages."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the packages to what is built. An editable installation refers to the folder of the checkout instead."""
        if version == "editable":
            return
        source = repository(self.root)
        is_archive = self.target_name == "sdist"
        for package in PACKAGES:
            build_data["force_include"][str(source / "src" / package)] = f"src/{package}" if is_archive else package
        if is_archive:
            build_data["force_include"][str(source / README)] = README
