"""The report of ``funcmcp inspect --clients``, and its short form in ``funcmcp doctor``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._serving.composition import runtime_of
from funcmcp._text.listing import some_of
from funcmcp_cli.client_rules.problems import left_out_of, problems_of
from funcmcp_cli.client_rules.rules import ALL_CLIENTS, CLIENTS, LOSSES, MEMBERS
from funcmcp_cli.console import SafeConsole, styled
from funcmcp_cli.json_values import as_list
from funcmcp_cli.output import write_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from funcmcp_cli.client_rules.problems import Problem
    from funcmcp_cli.connect import Source
    from funcmcp_cli.faults import Fault

_COLOURS = {"server": "red", "feature": "red", "detail": "yellow"}
_MAX_PLACES = 5
_MAX_NAMES = 3
_COUNTED = (("tools", "tool"), ("resources", "resource"), ("prompts", "prompt"))
_ALIASES = {"anthropic": "claude", "chatgpt": "openai", "vscode": "visual studio code"}
"""Other names of clients, and the names that the rules have for them."""


def clients_named(names: str) -> tuple[str, ...]:
    """Return the clients and APIs of the rules whose names contain one of the names in a comma-separated list.

    Raises:
        ValueError: A name is empty, or no rule is about a client of that name.
    """
    lower_names = [name.strip().lower() for name in names.split(",")]
    searched = [_ALIASES.get(name, name) for name in lower_names]
    for name in searched:
        if not name:
            raise ValueError(f"{names!r} has an empty name. {_valid_names()}")
        if not any(name in client.lower() for client in CLIENTS):
            raise ValueError(f"Unknown client {name!r}. {_valid_names()}")
    return tuple(client for client in CLIENTS if any(name in client.lower() for name in searched))


def _valid_names() -> str:
    return f"Clients: {', '.join(sorted(CLIENTS))}."


def report_problems(
    source: Source,
    facts: Mapping[str, Any],
    faults: Sequence[Fault],
    *,
    as_json: bool,
    clients: Sequence[str] = CLIENTS,
) -> bool:
    """Print what some clients do not accept of a server.

    Args:
        source: The server.
        facts: The result of `inspect_server`.
        faults: The features that cannot be listed.
        as_json: Print the description as a JSON document, with the problems in it.
        clients: The clients that count, by their names in the rules.

    Returns:
        Whether none of the clients loses a feature.
    """
    tools = () if source.server is None else runtime_of(source.server).server.catalog.tools
    problems = [
        problem
        for problem in problems_of(facts, left_out_of(tools, faults))
        if any(problem.rule.concerns(client) for client in (*clients, ALL_CLIENTS))
    ]
    if as_json:
        write_json({**facts, "problems": [problem.as_json() for problem in problems]})
    else:
        _print_problems(facts, problems, clients)
    return all(problem.rule.loss == "detail" for problem in problems)


def _print_problems(facts: Mapping[str, Any], problems: Sequence[Problem], clients: Sequence[str]) -> None:
    """Print the problems, rule by rule, a line for each client, and a summary."""
    console = SafeConsole()
    by_rule = _grouped(problems)
    for of_rule in by_rule:
        _print_rule(console, of_rule, clients)
    if by_rule:
        _print_clients(console, facts, problems, clients)
    console.print(_summary(facts, problems, clients), soft_wrap=True)


def _grouped(problems: Iterable[Problem]) -> list[list[Problem]]:
    """Return the problems of each rule, the worst losses first."""
    groups: dict[str, list[Problem]] = {}
    for problem in problems:
        groups.setdefault(problem.rule.word, []).append(problem)
    losses = list(LOSSES)
    return sorted(groups.values(), key=lambda group: losses.index(group[0].rule.loss))


def _print_rule(console: SafeConsole, problems: Sequence[Problem], clients: Sequence[str]) -> None:
    rule = problems[0].rule
    counted = {*clients, ALL_CLIENTS}
    names = ", ".join(name for name in rule.clients if not counted.isdisjoint((name, *MEMBERS.get(name, ()))))
    console.print(styled(rule.word, _COLOURS[rule.loss]), f"({LOSSES[rule.loss]})", soft_wrap=True)
    console.print(f"  {names}: {rule.accepts} {rule.effect}", soft_wrap=True)
    console.print(f"  {rule.advice} See {rule.sources[0]}", soft_wrap=True)
    keys_by_places: dict[tuple[str, ...], list[str]] = {}
    for problem in problems:
        keys_by_places.setdefault(tuple(problem.places), []).append(problem.key)
    for places, keys in keys_by_places.items():
        kind = problems[0].kind
        subject = f"{kind} {keys[0]}" if len(keys) == 1 else f"{len(keys)} {kind}s: {', '.join(keys)}"
        console.print(styled(f"  {subject}", "bold"), soft_wrap=True)
        for place in places[:_MAX_PLACES]:
            console.print(f"    - {place}", soft_wrap=True)
        if len(places) > _MAX_PLACES:
            console.print(f"    - and {len(places) - _MAX_PLACES} more; --json prints them")


def _print_clients(
    console: SafeConsole, facts: Mapping[str, Any], problems: Sequence[Problem], clients: Sequence[str]
) -> None:
    """Print a line for each client with a problem, and one for the others."""
    console.print()
    without_problem = []
    for client in clients:
        of_client = [problem for problem in problems if problem.rule.concerns(client)]
        if of_client:
            console.print(f"{client}: {'; '.join(_outcomes(facts, of_client))}", soft_wrap=True)
        else:
            without_problem.append(client)
    if without_problem:
        console.print(f"No problem: {', '.join(without_problem)}", soft_wrap=True)
    console.print()


def _outcomes(facts: Mapping[str, Any], problems: Sequence[Problem]) -> list[str]:
    """Return what a client does not accept, and what differs, such as "1 of 3 tools not accepted (name-start)"."""
    texts = []
    lost_keys: set[str] = set()
    for is_lost, outcome in ((True, "not accepted"), (False, "with differences")):
        group = [problem for problem in problems if (problem.rule.loss != "detail") is is_lost]
        rules = ", ".join(dict.fromkeys(problem.rule.word for problem in group))
        if any(problem.kind == "server" for problem in group):
            texts.append(f"all tools {outcome} ({rules})")
            continue
        counts = []
        for member, kind in _COUNTED:
            keys = {problem.key for problem in group if problem.kind == kind} - lost_keys
            if keys:
                total = len(as_list(facts[member]))
                counts.append(f"{len(keys)} of {total} {kind}s")
            lost_keys |= keys if is_lost else set()
        if counts:
            texts.append(f"{', '.join(counts)} {outcome} ({rules})")
    return texts


def _summary(facts: Mapping[str, Any], problems: Sequence[Problem], clients: Sequence[str]) -> str:
    """Return a line such as "2 rules are broken. Lost by no client: 2 of 3 tools. Without a problem: 1 of 3 tools."."""
    totals = {kind: len(as_list(facts[member])) for member, kind in _COUNTED}
    kinds = [kind for kind, total in totals.items() if total]
    if not kinds:
        return "The server has no tools, resources or prompts."
    if not problems:
        counts = [f"{totals[kind]} {kind}{'' if totals[kind] == 1 else 's'}" for kind in kinds]
        return f"No problems by the rules for {len(clients)} clients and APIs: {', '.join(counts)}."
    lost = [problem for problem in problems if problem.rule.loss != "detail"]
    count = len(_grouped(problems))
    sentences = [f"{count} rule is broken." if count == 1 else f"{count} rules are broken."]
    for title, group in (("Lost by no client", lost), ("Without a problem", problems)):
        counts = [f"{_count_without(group, kind, totals[kind])} of {totals[kind]} {kind}s" for kind in kinds]
        sentences.append(f"{title}: {', '.join(counts)}.")
    return " ".join(sentences)


def _count_without(problems: Sequence[Problem], kind: str, total: int) -> int:
    """Return how many features of a kind have none of some problems. A problem of the server is one of all tools."""
    if kind == "tool" and any(problem.kind == "server" for problem in problems):
        return 0
    return total - len({problem.key for problem in problems if problem.kind == kind})


def short_texts(problems: Iterable[Problem]) -> list[tuple[str, str]]:
    """Return for each rule by which clients lose a feature: the features that break it, and a text about it.

    Feature and text together are a sentence, as in `Finding`.
    """
    keys_by_word: dict[str, list[str]] = {}
    rules = {}
    for problem in problems:
        if problem.rule.loss != "detail":
            rules[problem.rule.word] = problem.rule
            keys_by_word.setdefault(problem.rule.word, []).append(problem.key)
    texts = []
    for word, rule in rules.items():
        keys = keys_by_word[word]
        verb = "is" if len(keys) == 1 else "are"
        clients = some_of(rule.clients, _MAX_NAMES)
        texts.append((some_of(keys, _MAX_NAMES), f"{verb} not accepted by {clients}. {rule.accepts} {rule.advice}"))
    return texts
