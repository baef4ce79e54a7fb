"""What the rules of ``funcmcp inspect --clients`` say of client libraries is what these do."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from funcmcp_cli.client_rules.problems import problems_of
from funcmcp_cli.client_rules.rules import RULES
from tests.cli.client_rules.test_rules import CASES
from tests.converters import rule_tools
from tests.converters.libraries import LIBRARIES, Library
from tests.converters.sources import HERE, Served, Source, serve_all
from tests.converters.verdicts import problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.skipif(Path(sys.prefix).name != ".venv", reason="make test runs the clients on one Python, in .venv"),
    pytest.mark.timeout(600),
    pytest.mark.slow("The client libraries of other makers are large."),
]

SOURCE = Source("rules", HERE / "rule_tools.py", {})


@dataclass(frozen=True)
class Names:
    """How the rules name a library.

    Attributes:
        own: Its names.
        apis: By API, the names in the rules of what loses tools declared for it. Other APIs are not compared, because
            the library loses more than the rules tell.
    """

    own: frozenset[str]
    apis: dict[str, frozenset[str]]


_GEMINI = frozenset({"Gemini API", "Gemini API with google-genai and Gemini CLI"})
_OPENAI = frozenset({"OpenAI API"})
_LANGCHAIN = frozenset({"langchain-google-genai", "langchain-mcp-adapters"})
_GOOGLE = frozenset({"google-genai"})
NAMES = {
    "google_genai": Names(_GOOGLE, {"gemini": _GOOGLE | _GEMINI}),
    "langchain": Names(_LANGCHAIN, {"gemini": _LANGCHAIN | _GEMINI, "openai": _LANGCHAIN | _OPENAI}),
    "langchain_js.mjs": Names(frozenset({"LangChain.js"}), {}),
    "llama_index": Names(frozenset({"LlamaIndex"}), {}),
    "mcp_use": Names(frozenset({"mcp-use"}), {}),
    "openai_agents": Names(frozenset(), {"openai": _OPENAI, "openai strict": _OPENAI | {"OpenAI API in strict mode"}}),
    "pydantic_ai": Names(frozenset(), {"openai": _OPENAI}),
}
"""By module of a library."""

ONLY_IN_CALLS = {"input-pattern", "time-offset"}
"""Rules whose tools are declared without a loss. The library refuses calls, which this test does not make."""

COMPARED = [library for library in LIBRARIES if library.module in NAMES]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    for library in COMPARED:
        assert library.command
    with serve_all([SOURCE], tmp_path_factory.mktemp("rules")) as [server]:
        yield Served(SOURCE, rule_tools.TOOLS, server.plan)


@pytest.fixture(scope="module")
def losses_in(served: Served) -> Callable[[Library], dict[str, set[str]]]:
    """Return by tool the APIs for which a library loses it, or a part of it."""
    lost: dict[str, dict[str, set[str]]] = {}

    def play(library: Library) -> dict[str, set[str]]:
        if library.name not in lost:
            [played] = library.play([served.plan])
            by_tool: dict[str, set[str]] = {name: set() for name in served.tools}
            for problem in problems(library, served, {**played, "calls": {}}):
                if not problem.text.endswith("becomes required"):  # no rule warns of optional arguments
                    by_tool[problem.tool].add(problem.api)
            lost[library.name] = by_tool
        return lost[library.name]

    return play


@pytest.mark.parametrize("library", COMPARED, ids=lambda library: library.name)
def test_a_library_loses_what_the_rules_say(
    library: Library, losses_in: Callable[[Library], dict[str, set[str]]]
) -> None:
    lost = losses_in(library)
    own = NAMES[library.module].own
    unconfirmed = [
        word
        for word, tool in rule_tools.BROKEN.items()
        if own & clients_of(word) and not lost[tool] and word not in ONLY_IN_CALLS
    ]
    assert unconfirmed == []


@pytest.mark.parametrize("library", COMPARED, ids=lambda library: library.name)
def test_a_tool_that_a_library_loses_breaks_a_rule(
    library: Library, losses_in: Callable[[Library], dict[str, set[str]]]
) -> None:
    facts = {"server": {"name": "rules"}, "tools": list(rule_tools.TOOLS.values())}
    found = problems_of(facts, {})
    unpredicted = []
    for tool, apis in losses_in(library).items():
        clients = {client for problem in found if problem.key == tool for client in problem.rule.clients}
        compared = NAMES[library.module].apis
        unpredicted += [(tool, api) for api in apis & compared.keys() if not clients & compared[api]]
    assert unpredicted == []


ALONE = [
    ("semantic_kernel", "several-types"),
    ("semantic_kernel", "name-characters"),
    ("typescript_v1.mjs", "output-pattern"),
]
"""Modules of libraries that lose all tools, and the rules that say so. The TypeScript SDK 2.x fails only in calls."""


@pytest.mark.parametrize(("module", "word"), ALONE)
def test_one_tool_costs_a_library_all_tools(module: str, word: str, tmp_path: Path) -> None:
    [library] = [library for library in LIBRARIES if library.module == module]
    plans = []
    with ExitStack() as stack:
        for number, definition in enumerate(CASES[word][:2]):
            file = tmp_path / f"server_{number}.py"
            tool = {**definition, "name": definition["name"].replace("/ü.", "")}
            file.write_text(
                f"from tests.converters.rule_tools import serving\n\nmcp = serving({{{tool['name']!r}: {tool!r}}})\n"
            )
            source = Source("rules", file, {})
            [server] = stack.enter_context(serve_all([source], tmp_path / "orders.db"))
            plans.append(server.plan)
        broken, accepted = library.play(plans)
    assert "fault" in broken
    assert "fault" not in accepted


def clients_of(word: str) -> frozenset[str]:
    return frozenset(client for rule in RULES if rule.word == word for client in rule.clients)
