"""Writes docs/development/clients.md: what each client can use, and why not."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from tests.converters.known_faults import FAULTS
from tests.converters.libraries import LIBRARIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.converters.known_faults import Fault
    from tests.converters.sources import Served
    from tests.converters.verdicts import Problem

_GROUPS = ("ordinary", "FastMCP", "SDK", "samples", "corpus")
_TEXT_LENGTH = 250
_URL = re.compile(r"http://127[\w.:/]+")
_OWN = ("ordinary", "samples", "corpus")
_API_NAMES = {
    "": "",
    "anthropic": "Claude",
    "gemini": "Gemini",
    "gemini json": "Gemini, JSON Schema",
    "openai": "OpenAI",
    "openai strict": "OpenAI, strict",
}
_HEAD = """\
# Clients and their conversions of tools

An application rarely shows a tool to a model as the server lists it. Its client library converts the tool to the
declaration of a model's API, and some conversions fail or lose parts of the schema. `make converters` installs the
libraries that people use, and connects each to servers over HTTP. Each library lists the tools, declares them for the
APIs that it supports, calls them, reads a resource and gets a prompt. `make test` does the same with `CI=true`.

A tool is usable if the client declares it without a fault, if the declaration has every argument with its types and
values, if the API accepts the declaration, and if a call succeeds. No API is asked: `tests/converters/apis.py`
re-expresses the rules of the APIs from public reports and documentation. Descriptions, limits and the members of
objects without names are not compared.

The ordinary tools are {ordinary} functions, one for each kind of type in the [guide](../guides/tools.md). FastMCP
4.2.3 and the official SDK 2.3.0 serve the same functions. The samples are those of this repository. The corpus is the
{corpus} different tools of the [published servers](corpus.md), as funcmcp lists them; every eighth of them is called.

A row of 0 means that one tool costs the client the whole list, such as one regular expression in a schema. OpenAI's
rules for strict schemas are applied where the client declares a tool as strict.

The script writes this page.

## Usable tools

| client | API | ordinary | FastMCP | SDK | samples | corpus |
|---|---|---|---|---|---|---|
"""
_FAULTS = """
## Faults of the clients

The tools that are not usable, by cause. The last column counts tools of funcmcp's servers.

| | clients | cause | source | tools |
|---|---|---|---|---|
"""
_TOOLS = """
## Ordinary tools that some clients can't use

The numbers are those of the causes.

| tool | clients |
|---|---|
"""
_PEERS = """
## More causes on the other frameworks

These have no counterpart on funcmcp.

| client | API | cause | FastMCP | SDK |
|---|---|---|---|---|
"""


def page(served: Sequence[Served], all_problems: Sequence[Problem]) -> str:
    """Return the page for the problems of all clients with some servers."""
    totals = Counter[str]()
    for server in served:
        totals[server.source.group] += len(server.tools)
    lines = [
        *_usable(totals, all_problems),
        *_FAULTS.splitlines(),
        *_causes(all_problems),
        *_TOOLS.splitlines(),
        *_ordinary(all_problems),
        *_PEERS.splitlines(),
        *_peers(all_problems),
    ]
    return _HEAD.format(ordinary=totals["ordinary"], corpus=totals["corpus"]) + "\n".join(lines) + "\n"


def _usable(totals: Counter[str], all_problems: Sequence[Problem]) -> Iterator[str]:
    unusable: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for problem in all_problems:
        if problem.is_about_a_tool:
            unusable[problem.library, problem.api, problem.group].add(problem.tool)
    for library in LIBRARIES:
        for api in library.apis:
            counts = [totals[group] - len(unusable[library.name, api, group]) for group in _GROUPS]
            cells = [f"{count} of {totals[group]}" for count, group in zip(counts, _GROUPS, strict=True)]
            yield f"| {library.name} | {_API_NAMES[api]} | {' | '.join(cells)} |"


def _causes(all_problems: Sequence[Problem]) -> Iterator[str]:
    for number, fault in enumerate(FAULTS, 1):
        explained = [problem for problem in all_problems if problem.fault is fault and problem.group in _OWN]
        clients = sorted({_client(problem) for problem in explained})
        tools = {(problem.group, problem.tool) for problem in explained if problem.is_about_a_tool}
        yield f"| {number} | {', '.join(clients)} | {fault.text} | {_source(fault)} | {len(tools) or ''} |"


def _client(problem: Problem) -> str:
    """Return the client without its version, and the API."""
    name = problem.library.rpartition(" ")[0]
    return f"{name} ({_API_NAMES[problem.api]})" if problem.api else name


def _source(fault: Fault) -> str:
    repository, _, number = fault.source.partition("#")
    if number:
        return f"[{fault.source}](https://github.com/{repository}/issues/{number})"
    return f"`{fault.source}`"


def _ordinary(all_problems: Sequence[Problem]) -> Iterator[str]:
    tools: defaultdict[str, set[str]] = defaultdict(set)
    for problem in all_problems:
        if problem.group == "ordinary" and problem.fault is not None and problem.is_about_a_tool:
            number = FAULTS.index(problem.fault) + 1
            tools[problem.tool].add(f"{_client(problem)} ({number})")
    for tool, clients in tools.items():
        yield f"| `{tool}` | {', '.join(sorted(clients))} |"


def _peers(all_problems: Sequence[Problem]) -> Iterator[str]:
    tools: defaultdict[tuple[str, str, str], defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for problem in all_problems:
        if problem.group not in _OWN and problem.fault is None:
            tools[problem.library, problem.api, _short(problem.text)][problem.group].add(problem.tool)
    for (library, api, text), groups in tools.items():
        counts = " | ".join(str(len(groups[group]) or "") for group in ("FastMCP", "SDK"))
        yield f"| {library} | {_API_NAMES[api]} | {text} | {counts} |"


def _short(text: str) -> str:
    """Return the cause without the argument, and without what differs between tools."""
    if text.startswith("called: "):
        return "a call fails"
    text = _URL.sub("URL", text)
    start, _, end = text.partition(": ")
    return (end if end and " " not in start else text)[:_TEXT_LENGTH].replace("|", "\\|")
