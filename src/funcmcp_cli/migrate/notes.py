"""The lines of the report of ``funcmcp migrate``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Level: TypeAlias = Literal["moves", "differs", "missing"]

LEVELS: tuple[Level, ...] = ("moves", "differs", "missing")


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """A line of the report.

    Attributes:
        file: The file, as a path from the project's folder.
        line: The number of the line. 0 for the whole file.
        level: "moves" for code that the command rewrites, "differs" for code that behaves differently afterwards,
            "missing" for code that has to be rewritten by hand.
        text: What the code is, and what becomes of it.
    """

    file: str
    line: int
    level: Level
    text: str

    @property
    def place(self) -> str:
        """The file and the line."""
        return f"{self.file}:{self.line}" if self.line else self.file
