"""The rules of ``funcmcp inspect --clients``, from the rows of ``rules.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from funcmcp_cli.client_rules import checks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp_cli.client_rules.checks import Check
    from funcmcp_cli.client_rules.subjects import Kind

Loss: TypeAlias = Literal["server", "feature", "detail"]

LOSSES: dict[Loss, str] = {
    "server": "all tools, or the whole list, are lost",
    "feature": "the feature is lost",
    "detail": "the feature works, but differs",
}
"""What the worst client of a rule loses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A restriction of clients.

    Attributes:
        word: The rule's name.
        kind: The features that it restricts.
        loss: What is lost in the worst of the clients.
        clients: The clients and APIs with the restriction.
        seen: The versions or dates of the observations.
        accepts: What these clients accept, as a sentence.
        effect: What happens otherwise, as a sentence.
        advice: What the author of a server can do.
        sources: URLs of reports, documentation and source code.
        check: Yields the places that break the rule.
    """

    word: str
    kind: Kind
    loss: Loss
    clients: tuple[str, ...]
    seen: str
    accepts: str
    effect: str
    advice: str
    sources: tuple[str, ...]
    check: Check

    def concerns(self, client: str) -> bool:
        """Return whether a client has the restriction, by its name or as a member of a group."""
        return client in self.clients or any(client in MEMBERS.get(group, ()) for group in self.clients)


def _rule(word: str, row: Mapping[str, Any]) -> Rule:
    """Return the rule of a row."""
    members = dict(row)
    options: dict[str, Any] = members.pop("options", {})
    for name, value in options.items():
        text = ", ".join(value) if isinstance(value, list) else str(value)
        members["accepts"] = members["accepts"].replace(f"{{{name}}}", text)
    members["check"] = partial(getattr(checks, members["check"]), **options)
    return Rule(word=word, **{**members, "clients": tuple(row["clients"]), "sources": tuple(row["sources"])})


_TABLES = tomllib.loads((files(__package__) / "rules.toml").read_text(encoding="utf-8"))

MEMBERS: Mapping[str, tuple[str, ...]] = {group: tuple(clients) for group, clients in _TABLES["groups"].items()}
"""Clients of the rules that belong to a group of clients in the rules."""

RULES = tuple(_rule(word, row) for word, row in _TABLES["rules"].items())

ALL_CLIENTS = "all clients"
CLIENTS = tuple(dict.fromkeys(client for rule in RULES for client in rule.clients if client != ALL_CLIENTS))
"""The clients and APIs that the rules are about."""
