"""The features of a server that some clients do not accept, by the rules in `rules.py`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._protocol.codec import decode
from funcmcp_cli.client_rules.rules import RULES
from funcmcp_cli.client_rules.subjects import subjects_of
from funcmcp_cli.faults import Fault, descriptions_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from funcmcp._server.catalog.features import LeftOut, Tool
    from funcmcp._server.dispatch import Server
    from funcmcp_cli.client_rules.rules import Rule
    from funcmcp_cli.client_rules.subjects import Kind

_MAX_PLACES = 100


class Problem(NamedTuple):
    """A feature that breaks a rule.

    Attributes:
        kind: The kind of feature; "server" for the list of tools.
        key: Its name or URI.
        rule: The rule.
        places: What breaks the rule, 100 places at most.
    """

    kind: Kind
    key: str
    rule: Rule
    places: Sequence[str]

    def as_json(self) -> dict[str, Any]:
        """Return the problem as a JSON object."""
        rule = self.rule
        return {
            "kind": self.kind,
            "key": self.key,
            "rule": rule.word,
            "loss": rule.loss,
            "places": list(self.places),
            "clients": list(rule.clients),
            "seen": rule.seen,
            "accepts": rule.accepts,
            "effect": rule.effect,
            "advice": rule.advice,
            "sources": list(rule.sources),
        }


def problems_of(facts: Mapping[str, Any], left_out: Mapping[str, Sequence[LeftOut]]) -> list[Problem]:
    """Return what some clients do not accept of a server, feature by feature.

    Args:
        facts: The result of `inspect_server`.
        left_out: By name of a tool, what its generated schemas do not say. Empty for a server that is not in this
            process.
    """
    problems = []
    for subject in subjects_of(facts, left_out):
        for rule in RULES:
            if rule.kind == subject.kind:
                places = list(islice(rule.check(subject), _MAX_PLACES))
                if places:
                    problems.append(Problem(subject.kind, subject.key, rule, places))
    return problems


def left_out_of(tools: Iterable[Tool], faults: Iterable[Fault]) -> dict[str, Sequence[LeftOut]]:
    """Return by name of a tool what its generated schemas do not say.

    Args:
        tools: The tools of a server in this process.
        faults: The features that cannot be described.
    """
    faulty = {fault.key for fault in faults if fault.kind == "tool"}
    return {tool.key: tool.left_out() for tool in tools if tool.key not in faulty}


def problems_in(server: Server, name: str) -> list[Problem]:
    """Return what some clients do not accept of a server in this process, without a request.

    Args:
        server: The server. Features that cannot be described are left out.
        name: Its name.
    """
    facts: dict[str, Any] = {"server": {"name": name}}
    faults = []
    for description in descriptions_of(server):
        if isinstance(description, Fault):
            faults.append(description)
        else:
            member, definition = description
            facts.setdefault(member, []).append(decode(definition))
    return problems_of(facts, left_out_of(server.catalog.tools, faults))
