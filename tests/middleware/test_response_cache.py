"""Middleware that caches results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._auth.principal import Principal
from funcmcp._protocol.errors import ToolError
from funcmcp.middleware import cache_results
from tests import schemas
from tests.server.parts import answer, context, prompt, resource, server, template, text_result, tool

if TYPE_CHECKING:
    from funcmcp._server.dispatch import Server


class Counting:
    """A tool that counts its calls and answers with the count."""

    def __init__(self) -> None:
        self.calls = 0

    async def __call__(self, _context: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        self.calls += 1
        if arguments.get("fail"):
            raise ToolError("failed")
        return text_result(arguments.get("text") or str(self.calls))


class Caller:
    """The HTTP request of a principal, as far as the server reads it."""

    def __init__(self, subject: str) -> None:
        self.principal = Principal(subject)
        self.caller = None


def counted(**options: Any) -> tuple[Server, Counting]:
    counting = Counting()
    cache = cache_results(60, ["count"], **options)
    return server(tool("count", counting), tool("other", counting), middleware=[cache]), counting


async def call(served: Server, name: str = "count", subject: str | None = None, **arguments: Any) -> dict[str, Any]:
    asked = context("tools/call", {"name": name, "arguments": arguments, "_meta": {"n": len(arguments)}})
    if subject is not None:
        asked.http = Caller(subject)  # type: ignore[assignment]
    result: dict[str, Any] = (await answer(served, asked))["result"]
    return result


async def test_the_same_request_is_answered_from_the_cache() -> None:
    served, counting = counted()
    for _ in range(3):
        assert await call(served, a=1) == text_result("1")
    assert await call(served, a=2) == text_result("2")
    assert counting.calls == 2


async def test_only_the_chosen_features_are_cached() -> None:
    served, counting = counted()
    for _ in range(2):
        await call(served, "other")
    assert counting.calls == 2


async def test_each_principal_has_its_own_results() -> None:
    served, counting = counted()
    for subject in ("alice", "bob", None, "alice", "bob", None):
        await call(served, subject=subject)
    assert counting.calls == 3


async def test_errors_are_not_cached() -> None:
    served, counting = counted()
    for _ in range(2):
        assert (await call(served, fail=True))["isError"] is True
    assert counting.calls == 2


async def test_a_result_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("funcmcp._middleware.response_cache.time.monotonic", lambda: now[0])
    served, counting = counted()
    await call(served)
    now[0] += 59
    await call(served)
    assert counting.calls == 1
    now[0] += 1
    await call(served)
    assert counting.calls == 2
    await call(served)
    assert counting.calls == 2


async def test_the_result_that_was_used_longest_ago_leaves_a_full_cache() -> None:
    served, counting = counted(max_bytes=9000)
    for number in (1, 2):
        await call(served, text=str(number) * 1500)
    await call(served, text="1" * 1500)  # is used again
    await call(served, text="3" * 1500)
    assert counting.calls == 3
    await call(served, text="1" * 1500)
    assert counting.calls == 3
    await call(served, text="2" * 1500)
    assert counting.calls == 4


async def test_a_result_larger_than_the_cache_is_not_kept() -> None:
    served, counting = counted(max_bytes=1000)
    for _ in range(2):
        await call(served, text="x" * 1000)
    assert counting.calls == 2


@pytest.mark.parametrize("revision", schemas.REVISIONS)
async def test_resources_templates_and_prompts_are_cached_in_each_revision(revision: str) -> None:
    reads: list[str] = []

    async def read(_context: Any, uri: str, _values: Any) -> dict[str, Any]:
        reads.append(uri)
        return {"contents": [{"uri": uri, "text": str(len(reads))}]}

    async def get(_context: Any, arguments: dict[str, str]) -> dict[str, Any]:
        reads.append(str(arguments))
        return {"messages": []}

    served = server(
        resource("menu://today", read),
        template("menu://day/{day}", read),
        prompt("praise", get),
        middleware=[cache_results(60, ["menu://today", "menu://day/{day}", "praise"])],
    )
    for _ in range(2):
        for method, params in (
            ("resources/read", {"uri": "menu://today"}),
            ("resources/read", {"uri": "menu://day/monday"}),
            ("prompts/get", {"name": "praise", "arguments": {"a": "b"}}),
        ):
            assert "result" in await answer(served, context(method, params, revision=revision))
    assert reads == ["menu://today", "menu://day/monday", "{'a': 'b'}"]


@pytest.mark.parametrize(("seconds", "max_bytes"), [(0, 1), (-1, 1), (float("nan"), 1), (1, 0)])
def test_a_cache_has_a_time_and_a_size(seconds: float, max_bytes: int) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        cache_results(seconds, ["count"], max_bytes=max_bytes)


def test_features_are_a_list() -> None:
    with pytest.raises(TypeError, match="not one string"):
        cache_results(1, "count")
