"""A rule about function apps, and what a rule finds in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from funcmcp_host.app_rules.model import App

Group: TypeAlias = Literal["triggers", "handler", "access", "settings"]
Level: TypeAlias = Literal["error", "warning"]
Faults: TypeAlias = "Iterator[tuple[str, str]]"
"""Subjects, each with the rest of the sentence about it."""


class Rule(NamedTuple):
    """A rule about function apps.

    Attributes:
        name: Its name in the documentation.
        group: What it is about.
        level: "error" if the app would not work on Azure, "warning" if it may not work as its author expects.
        condition: Where it finds something.
        effect: What Azure, or a client, does then.
        advice: What to write.
        source: Where Azure's code or documentation says so.
        check: Yields what it finds in an app.
    """

    name: str
    group: Group
    level: Level
    condition: str
    effect: str
    advice: str
    source: str
    check: Callable[[App], Faults]


class Breach(NamedTuple):
    """What a rule finds in an app.

    Attributes:
        rule: The rule.
        subject: The function, file or setting.
        text: The rest of the sentence that begins with the subject.
    """

    rule: Rule
    subject: str
    text: str
