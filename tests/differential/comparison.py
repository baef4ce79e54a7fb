"""Compares funcmcp with the judges, call by call, and explains disagreements by rules."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from tests.differential.differences import RULES
from tests.differential.judges import FuncMCP, Pydantic, Schema, Verdict, new_ajv, new_fastmcp
from tests.differential.signatures import Generator

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.differential.judges import Worker
    from tests.differential.signatures import Signature

CALLS_OF_A_SIGNATURE = 14
CONVERSION = "conversion"
"""The name of the rule that FastMCP converts arguments as pydantic does by default."""

PLAIN = "plain results"
"""The name of the rule that FastMCP makes only blocks of a bare list and of bytes."""

TYPED = "typed results"
"""The name of the rule that FastMCP writes bytes in results without their type, and fails if they are not UTF-8."""

CHECKED = "checked results"
"""The name of the rule that funcmcp refuses a result that the announced schema does not allow."""

_ALL = frozenset(rule.name for rule in RULES)


@dataclass
class Report:
    """What a run showed.

    Attributes:
        calls: The number of calls.
        accepted: How many of them funcmcp accepted.
        compared: The number of comparisons with each judge.
        explained: The number of explained disagreements, by judge and rule.
        unexplained: A text for each other disagreement, with what repeats it.
    """

    calls: int = 0
    accepted: int = 0
    compared: Counter[str] = field(default_factory=Counter)
    explained: Counter[tuple[str, str]] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)

    def table(self) -> str:
        """Return the numbers as a table of Markdown: a row for each judge, with the rules that explain its part."""
        lines = ["| judge | comparisons | disagreements by rule |", "|---|---|---|"]
        for judge, count in self.compared.items():
            rules = [f"{rule} {number}" for (name, rule), number in sorted(self.explained.items()) if name == judge]
            lines.append(f"| {judge} | {count:,} | {', '.join(rules)} |")
        return "\n".join(lines)


class _Case:
    """One signature, and what the judges say about calls of it.

    Args:
        signature: The signature.
        place: What repeats it, for the report.
        report: Gets what the calls show.
        ajv: The worker that runs ajv; None if it is not installed.
        fastmcp: The worker that runs FastMCP; None if it is not installed.
    """

    def __init__(
        self, signature: Signature, place: str, report: Report, *, ajv: Worker | None, fastmcp: Worker | None
    ) -> None:
        self._signature = signature
        self._place = place
        self._report = report
        self._ajv = ajv
        self._fastmcp = fastmcp
        self._tool = FuncMCP(signature)
        self._input = Schema(self._tool.input_schema, self._ajv, of_arguments=True)
        self._output: Schema | None = None
        if self._tool.output_schema is not None:
            self._output = Schema(self._tool.output_schema, self._ajv, of_arguments=False)
        self._pydantic = Pydantic(signature, strict=True)
        self._by_default = Pydantic(signature, strict=False)

    async def compare(self, calls: list[dict[str, Any]]) -> None:
        """Make calls, and compare what becomes of them."""
        theirs: Any = [None] * len(calls)
        if self._fastmcp is not None:
            theirs = self._fastmcp.ask({"source": self._signature.source(), "calls": calls})
        for arguments, verdict in zip(calls, theirs, strict=True):
            ours = await self._tool.call(arguments)
            self._report.calls += 1
            self._report.accepted += ours.received is not None
            self._compare_arguments(arguments, ours)
            if ours.received is not None:
                self._compare_result(arguments, ours)
            if self._fastmcp is not None:
                self._compare_with_fastmcp(arguments, ours, verdict)

    def _compare_arguments(self, arguments: dict[str, Any], ours: Verdict) -> None:
        accepted = ours.received is not None
        schema = self._input
        self._judge("jsonschema, arguments", arguments, accepted, partial(schema.by_jsonschema, arguments))
        if self._ajv is not None:
            self._judge("ajv, arguments", arguments, accepted, partial(schema.by_ajv, arguments))
        self._judge(
            "pydantic, arguments",
            arguments,
            ours.received,
            lambda rules: self._pydantic.call(arguments, rules).received,
        )

    def _compare_result(self, arguments: dict[str, Any], ours: Verdict) -> None:
        schema, structured = self._output, ours.result
        if ours.error:
            self._compare_refused_result(arguments, ours)
        elif schema is not None:
            self._judge("jsonschema, result", arguments, True, partial(schema.by_jsonschema, structured))
            if self._ajv is not None:
                self._judge("ajv, result", arguments, True, partial(schema.by_ajv, structured))
            self._judge(
                "pydantic, result",
                arguments,
                self._comparable(structured),
                lambda rules: self._structured(self._pydantic.call(arguments, rules).result),
            )

    def _compare_refused_result(self, arguments: dict[str, Any], ours: Verdict) -> None:
        """Compare a result that funcmcp refuses to send with its schema, which must not allow it."""
        self._report.compared["funcmcp, result"] += 1
        result = self._pydantic.call(arguments, _ALL).result
        if self._output is not None:
            is_valid = self._output.by_jsonschema(self._structured(result))
        else:  # a text, whose schema is that of the argument
            is_valid = self._input.by_jsonschema({**arguments, self._signature.fields[0].name: result})
        if is_valid:
            self._unexplained("funcmcp, result", arguments, ours.error, result)
        else:
            self._report.explained["funcmcp, result", CHECKED] += 1

    def _structured(self, result: Any) -> Any:
        """Return a result in the form of structured content."""
        schema = self._tool.output_schema or {}
        wrapped = {"result": result} if list(schema.get("properties", ())) == ["result"] else result
        return self._comparable(wrapped)

    def _comparable(self, structured: Any) -> Any:
        """Return structured content with sorted arrays if they may come from sets, which have no order."""
        return _sorted(structured) if "set[" in self._signature.source() else structured

    def _compare_with_fastmcp(self, arguments: dict[str, Any], ours: Verdict, theirs: dict[str, Any] | None) -> None:
        """Compare with FastMCP. What it does differently must be what pydantic does by default."""
        received = None if theirs is None else theirs["received"]
        by_default = self._by_default.call(arguments)
        self._judge_fastmcp("FastMCP, arguments", arguments, ours.received, received, by_default.received)
        if theirs is not None and ours.received == received and self._output is not None and not ours.error:
            structured = self._comparable(theirs["structured"])
            expected = self._comparable(by_default.result)
            if structured == {"result": expected}:
                expected = structured
            self._judge_fastmcp("FastMCP, result", arguments, self._comparable(ours.result), structured, expected)

    def _judge_fastmcp(self, judge: str, arguments: dict[str, Any], ours: Any, theirs: Any, by_default: Any) -> None:
        self._report.compared[judge] += 1
        if _same(ours, theirs):
            return
        if _same(theirs, by_default):
            self._report.explained[judge, CONVERSION] += 1
        elif theirs is None and list(ours) == ["result"]:
            self._report.explained[judge, PLAIN] += 1
        elif isinstance(theirs, str) and "invalid utf-8" in theirs and ours in (by_default, {"result": by_default}):
            self._report.explained[judge, TYPED] += 1
        else:
            self._unexplained(judge, arguments, ours, theirs)

    def _judge(self, judge: str, arguments: dict[str, Any], ours: Any, ask: Callable[[frozenset[str]], Any]) -> None:
        """Compare with a judge, and look for the rules that explain a disagreement."""
        self._report.compared[judge] += 1
        theirs = ask(frozenset())
        if _same(theirs, ours):
            return
        rules = _explanation(lambda rules: _same(ask(rules), ours))
        if rules is None:
            self._unexplained(judge, arguments, ours, theirs, ask(_ALL))
        else:
            self._report.explained.update((judge, rule) for rule in rules)

    def _unexplained(self, judge: str, arguments: dict[str, Any], ours: Any, *theirs: Any) -> None:
        lines = [
            f"{judge} ({self._place})",
            self._signature.source(),
            f"arguments: {arguments}",
            f"funcmcp: {ours}",
            *(f"judge: {verdict}" for verdict in theirs),
        ]
        self._report.unexplained.append("\n".join(lines))


def _explanation(agrees: Callable[[frozenset[str]], bool]) -> frozenset[str] | None:
    """Return a smallest set of rules under which a judge agrees with funcmcp, or None."""
    for size in (1, 2):
        for rules in itertools.combinations(sorted(_ALL), size):
            if agrees(frozenset(rules)):
                return frozenset(rules)
    if not agrees(_ALL):
        return None
    needed = _ALL
    for rule in sorted(_ALL):
        if agrees(needed - {rule}):
            needed -= {rule}
    return needed


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(member) for name, member in value.items()}
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=repr)
    return value


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)


async def compared(seed: int, calls: int) -> Report:
    """Compare at least this number of calls of random signatures with the judges that are installed."""
    report = Report()
    ajv, fastmcp = new_ajv(), new_fastmcp()
    try:
        for number in itertools.count():
            if report.calls >= calls:
                break
            # Each signature has a seed of its own, so that a single one can be repeated.
            generator = Generator(Random(f"{seed} {number}"))
            signature = generator.signature()
            arguments = [generator.arguments(signature) for _ in range(CALLS_OF_A_SIGNATURE)]
            place = f"seed {seed}, signature {number}"
            await _Case(signature, place, report, ajv=ajv, fastmcp=fastmcp).compare(arguments)
    finally:
        for worker in (ajv, fastmcp):
            if worker is not None:
                worker.close()
    return report
