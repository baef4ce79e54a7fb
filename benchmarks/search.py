"""How often the search for tools finds the right one, beside the two searches of FastMCP, and what it costs.

    python benchmarks/search.py TOOLS [--fastmcp PYTHON] [--held-out]

TOOLS is a file with one JSON object a line: server, name, title, description and inputSchema of a tool. It is not part
of the repository, because the texts belong to their authors: `search_sources.txt` names the packages whose servers were
started, or whose source was read, and `tools/list` has the rest. The questions are in `search_questions.jsonl`. PYTHON
is an interpreter with fastmcp. The result is printed as Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import time
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
FIRST = 5
MANY = 10_000
HELD_OUT_FROM = 300
"""The place of the first question that no weight was chosen by."""


def read(path: Path) -> list[dict[str, Any]]:
    """Return the objects in a file with one on each line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


async def matches_of_funcmcp(tools: list[dict[str, Any]], queries: list[str]) -> list[list[str]]:
    """Return the names that funcmcp finds for each query, the best first."""
    from funcmcp import MCPServer
    from funcmcp._server.catalog.features import Tool
    from funcmcp._serving.composition import runtime_of

    async def handle(*_: object) -> Any:
        raise NotImplementedError

    mcp = MCPServer("benchmark")
    for tool in tools:
        members = {key: tool[key] for key in ("name", "title", "description", "inputSchema") if tool.get(key)}
        runtime_of(mcp).server.catalog.add(Tool(tool["name"], partial(dict, members), handle, annotations={}))
    mcp.tool_search(max_results=20, result_characters=1_000_000)
    matches = []
    for query in queries:
        result = await mcp.call_tool("search_tools", {"query": query})
        matches.append([tool["name"] for tool in (result.structured_content or {})["tools"]])
    return matches


async def matches_of_fastmcp(tools: list[dict[str, Any]], queries: list[str]) -> dict[str, list[list[str]]]:
    """Return the same for FastMCP's searches. For the regular expression, the query is its words of four letters."""
    from fastmcp.server.transforms.search import BM25SearchTransform, RegexSearchTransform
    from fastmcp.tools.base import Tool

    catalogue = [
        Tool(name=tool["name"], description=tool.get("description"), parameters=tool["inputSchema"]) for tool in tools
    ]
    by_words, by_pattern = BM25SearchTransform(max_results=20), RegexSearchTransform(max_results=20)
    matches: dict[str, list[list[str]]] = {"FastMCP, BM25": [], "FastMCP, regular expression": []}
    for query in queries:
        pattern = "|".join(re.findall(r"\w{4,}", query)) or query
        for name, search in {
            "FastMCP, BM25": (by_words, query),
            "FastMCP, regular expression": (by_pattern, pattern),
        }.items():
            tools_of_search = await search[0]._search(catalogue, search[1])  # noqa: SLF001 - without a server around it
            matches[name].append([tool.name for tool in tools_of_search])
    return matches


def place(names: list[str], right: list[str]) -> int | None:
    """Return the place of the first right tool, from 1; None if none is there."""
    return next((number for number, name in enumerate(names, 1) if name in right), None)


def row(name: str, matches: list[list[str]], questions: list[dict[str, Any]]) -> str:
    """Return a row of the table."""
    places = [place(names, question["right"]) for names, question in zip(matches, questions, strict=True)]
    shares = [sum(at is not None and at <= limit for at in places) / len(places) for limit in (1, FIRST, 10, 20)]
    return f"| {name} | " + " | ".join(f"{share:.1%}" for share in shares) + " |"


def print_costs(tools: list[dict[str, Any]], queries: list[str]) -> None:
    """Print what 10,000 tools cost: copies of the catalogue with other names."""
    from funcmcp._server.tool_index import Index, best_matches, count_words, terms_in
    from funcmcp._server.tool_search import texts_of

    many = [
        {**tools[number % len(tools)], "name": f"{tools[number % len(tools)]['name']}_{number}"}
        for number in range(MANY)
    ]
    index = Index()
    tracemalloc.start()
    for tool in many:
        index.add(tool["name"], count_words(texts_of(tool, ())))
    megabytes = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    index = Index()
    start = time.process_time()
    for tool in many:
        index.add(tool["name"], count_words(texts_of(tool, ())))
    seconds = time.process_time() - start
    times = []
    for query in queries:
        start = time.process_time()
        best_matches([index], terms_in(query, 16), FIRST)
        times.append(1000 * (time.process_time() - start))
    times.sort()
    longest, median, nearly_all = times[-1], times[len(times) // 2], times[len(times) * 95 // 100]
    print(f"\n{MANY:,} tools: the index takes {seconds:.1f} s of CPU time and {megabytes:.0f} MB.")
    print(f"A search takes {median:.1f} ms (median), {nearly_all:.1f} ms (95 %), {longest:.1f} ms (longest).")


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tools", type=Path)
    parser.add_argument("--fastmcp", help="an interpreter with fastmcp")
    parser.add_argument("--held-out", action="store_true", help="the other questions")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    tools, questions = read(options.tools), read(FOLDER / "search_questions.jsonl")
    questions = questions[HELD_OUT_FROM:] if options.held_out else questions[:HELD_OUT_FROM]
    queries = [question["question"] for question in questions]
    if options.peer:
        json.dump(asyncio.run(matches_of_fastmcp(tools, queries)), sys.stdout)
        return
    own = asyncio.run(matches_of_funcmcp(tools, queries))
    print(f"{len(questions)} questions over {len(tools):,} tools: how often a right tool is among the first.\n")
    print("| search | first | first 5 | first 10 | first 20 |\n|---|---|---|---|---|")
    print(row("funcmcp", own, questions))
    if options.fastmcp:
        command = [
            options.fastmcp,
            __file__,
            str(options.tools),
            "--peer",
            *(["--held-out"] if options.held_out else []),
        ]
        peers = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        for name, matches in peers.items():
            print(row(name, matches, questions))
    print_costs(tools, queries)
    print("\nQuestions without a right tool among the first five, with the place of the first right one:\n")
    for question, names in zip(questions, own, strict=True):
        at = place(names, question["right"])
        if at is None or at > FIRST:
            print(f"- {question['question']} ({at or 'not among 20'}): {', '.join(question['right'][:3])}")


if __name__ == "__main__":
    main()
