"""The report of ``funcmcp inspect --clients``, and its short form in ``funcmcp doctor``."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from funcmcp._cli.client_rules.problems import left_out_of, problems_of
from funcmcp._cli.client_rules.rules import LOSSES
from funcmcp._cli.console import SafeConsole, styled
from funcmcp._cli.json_values import as_list
from funcmcp._cli.output import write_json
from funcmcp._serving import serving_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from funcmcp._cli.client_rules.problems import Problem
    from funcmcp._cli.connect import Source
    from funcmcp._cli.faults import Fault

_COLOURS = {"server": "red", "feature": "red", "detail": "yellow"}
_MAX_PLACES = 5
_MAX_NAMES = 3
_COUNTED = (("tools", "tool"), ("resources", "resource"), ("prompts", "prompt"))


def report_problems(source: Source, facts: Mapping[str, Any], faults: Sequence[Fault], *, as_json: bool) -> bool:
    """Print what some clients do not accept of a server.

    Args:
        source: The server.
        facts: The result of `inspect_server`.
        faults: The features that cannot be listed.
        as_json: Print the description as a JSON document, with the problems in it.

    Returns:
        Whether no known client loses a feature.
    """
    tools = () if source.server is None else serving_of(source.server).server.catalog.tools
    problems = problems_of(facts, left_out_of(tools, faults))
    if as_json:
        write_json({**facts, "problems": [problem.as_json() for problem in problems]})
    else:
        _print_problems(facts, problems)
    return all(problem.rule.loss == "detail" for problem in problems)


def _print_problems(facts: Mapping[str, Any], problems: Sequence[Problem]) -> None:
    """Print the problems, feature by feature, and a summary."""
    console = SafeConsole()
    for (kind, key), of_feature in groupby(problems, lambda problem: (problem.kind, problem.key)):
        console.print(styled(f"{kind} {key}", "bold"), soft_wrap=True)
        for problem in of_feature:
            _print_problem(console, problem)
    console.print(_summary(facts, problems), soft_wrap=True)


def _print_problem(console: SafeConsole, problem: Problem) -> None:
    rule = problem.rule
    console.print(styled(f"  {rule.word}", _COLOURS[rule.loss]), f"({LOSSES[rule.loss]})", soft_wrap=True)
    console.print(f"    {', '.join(rule.clients)}: {rule.accepts} {rule.effect}", soft_wrap=True)
    console.print(f"    {rule.advice} See {rule.sources[0]}", soft_wrap=True)
    for place in problem.places[:_MAX_PLACES]:
        console.print(f"    - {place}", soft_wrap=True)
    if len(problem.places) > _MAX_PLACES:
        console.print(f"    - and {len(problem.places) - _MAX_PLACES} more; --json prints them")


def _summary(facts: Mapping[str, Any], problems: Sequence[Problem]) -> str:
    """Return a line such as "2 problems; all known clients accept 1 of 3 tools, 1 of 1 prompts"."""
    counts = []
    for member, kind in _COUNTED:
        total = len(as_list(facts[member]))
        broken = {problem.key for problem in problems if problem.kind == kind and problem.rule.loss != "detail"}
        if total and problems:
            counts.append(f"{total - len(broken)} of {total} {kind}s")
        elif total:
            counts.append(f"{total} {kind}" if total == 1 else f"{total} {kind}s")
    if not counts:
        return "The server has no tools, resources or prompts."
    count = {0: "no problems", 1: "1 problem"}.get(len(problems), f"{len(problems)} problems")
    return f"{count}; all known clients accept {', '.join(counts)}"


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
        texts.append((_some(keys), f"{verb} not accepted by {_some(rule.clients)}. {rule.accepts} {rule.advice}"))
    return texts


def _some(names: Sequence[str]) -> str:
    """Return up to three names, and the number of the others."""
    if len(names) > _MAX_NAMES:
        return f"{', '.join(names[:_MAX_NAMES])} and {len(names) - _MAX_NAMES} more"
    return ", ".join(names)
