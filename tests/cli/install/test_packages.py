"""The packages that uv installs for a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp_cli.failure import Failure
from funcmcp_cli.install.packages import Packages

if TYPE_CHECKING:
    from pathlib import Path


def test_a_file_of_requirements_has_its_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "requirements.txt"
    file.touch()
    packages = Packages.of(["pandas", "numpy>=2"], file.relative_to(tmp_path))
    assert packages
    assert packages.options() == ["--with", "pandas", "--with", "numpy>=2", "--with-requirements", str(file)]
    packages.check("uvx", None)


def test_no_package_is_never_rejected() -> None:
    packages = Packages.of([], None)
    assert not packages
    packages.reject("A server at a URL")
    packages.check("python", None)


@pytest.mark.parametrize("name", ["", " ", "--write"])
def test_an_empty_package_or_an_option_is_rejected(name: str) -> None:
    with pytest.raises(Failure, match=r"is not a package\. Write a requirement"):
        Packages.of([name], None)


def test_a_file_that_does_not_exist_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"--with-requirements: .*none\.txt does not exist\."):
        Packages.of([], tmp_path / "none.txt")


def test_the_sentence_has_the_command_of_pip(tmp_path: Path) -> None:
    with pytest.raises(Failure, match=r"-m pip install 'pandas>=2' -r .*requirements\.txt"):
        Packages(("pandas>=2",), tmp_path / "requirements.txt").check("python", "uv")
