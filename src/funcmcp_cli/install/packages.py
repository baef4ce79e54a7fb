"""The packages that uv installs for a server, beside those of its project."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from funcmcp_cli.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_OPTIONS = "--with and --with-requirements"


@dataclass(frozen=True, slots=True)
class Packages:
    """Packages of a command line.

    Attributes:
        names: Requirements such as "pandas>=2".
        file: The absolute path of a file with requirements. None if there is none.
    """

    names: tuple[str, ...] = ()
    file: Path | None = None

    @classmethod
    def of(cls, names: Sequence[str], file: Path | None) -> Packages:
        """Return the packages of options. Raise Failure if a name is empty or the file does not exist."""
        for name in names:
            if not name.strip() or name.startswith("-"):
                raise Failure(f"--with {name!r} is not a package. Write a requirement, such as --with 'pandas>=2'.")
        if file is None:
            return cls(tuple(names))
        if not file.is_file():
            raise Failure(f"--with-requirements: {file} does not exist.")
        return cls(tuple(names), file.absolute())

    def __bool__(self) -> bool:
        """Return whether there is a package."""
        return bool(self.names) or self.file is not None

    def options(self) -> list[str]:
        """Return the options of ``uv run`` and ``uvx``."""
        options = [word for name in self.names for word in ("--with", name)]
        if self.file is not None:
            options += ["--with-requirements", str(self.file)]
        return options

    def reject(self, subject: str) -> None:
        """Raise Failure if there is a package for something that uv does not start."""
        if self:
            raise Failure(f"{subject} has its own packages. Leave out {_OPTIONS}, which are for Python files.")

    def check(self, runner: str, uv: str | None) -> None:
        """Raise Failure if nothing would install the packages.

        Args:
            runner: What runs the server.
            uv: The path of uv. None if there is none.
        """
        if not self:
            return
        if runner == "python":
            raise Failure(f"{_OPTIONS} need uv. Leave out --runner python, or install them: {self._pip()}")
        if runner == "auto" and uv is None:
            raise Failure(
                f"{_OPTIONS} need uv, which is not on PATH. Install it (https://docs.astral.sh/uv/), or leave them out "
                f"and install the packages for the server: {self._pip()}"
            )

    def _pip(self) -> str:
        words = list(map(shlex.quote, self.names))
        if self.file is not None:
            words += ["-r", shlex.quote(str(self.file))]
        return f"{shlex.quote(sys.executable)} -m pip install {' '.join(words)}"
