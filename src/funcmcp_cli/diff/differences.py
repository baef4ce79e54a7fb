"""One difference between two servers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Level: TypeAlias = Literal["breaking", "compatible", "wording"]

LEVELS: tuple[Level, ...] = ("breaking", "compatible", "wording")
_MAX_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between two servers.

    Attributes:
        level: "breaking" if a client of the old server can fail with the new one, "wording" if only texts for the model
            or for people differ, "compatible" otherwise.
        subject: The feature, such as "tool add".
        text: What differs.
    """

    level: Level
    subject: str
    text: str


def level_of(*, is_breaking: bool) -> Level:
    """Return the level of a difference that breaks clients, or of one that does not."""
    if is_breaking:
        return "breaking"
    return "compatible"


def short(value: Any) -> str:
    """Return a value as JSON on one line, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= _MAX_LENGTH:
        return text
    return f"{text[: _MAX_LENGTH - 3]}..."


def changed(name: str, before: Any, after: Any) -> str:
    """Return the text about a member that changed, is new or is missing. None stands for a missing one."""
    if before is None:
        return f"{name} is new: {short(after)}"
    if after is None:
        return f"{name} is missing; it was {short(before)}"
    return f"{name} changed from {short(before)} to {short(after)}"


def print_differences(result: Sequence[Difference]) -> None:
    """Print differences, and how many of each level there are."""
    from funcmcp_cli.console import SafeConsole, styled  # noqa: PLC0415 - it loads rich

    colours = {"breaking": "red", "compatible": "yellow", "wording": "cyan"}
    console = SafeConsole()
    for difference in result:
        level = styled(f"{difference.level:10}", colours[difference.level])
        console.print(level, f" {difference.subject}: {difference.text}", soft_wrap=True)
    if not result:
        console.print("no differences")
        return
    counts = [f"{sum(difference.level == level for difference in result)} {level}" for level in LEVELS]
    console.print(", ".join(counts))
