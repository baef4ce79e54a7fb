"""Functions around each request to an upstream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._server.calls.upstream_call import UpstreamCall, around_all

if TYPE_CHECKING:
    from funcmcp._server.calls.upstream_call import Around, Send

CALL = UpstreamCall("docs", "tools/call", {"name": "search"}, "2025-11-25", "tcp")


def noting(name: str, notes: list[str]) -> Around:
    async def around(call: UpstreamCall, send: Send) -> dict[str, Any]:
        notes.append(f"{name} begins {call.method}")
        result = await send()
        notes.append(f"{name} ends")
        return result

    return around


async def test_the_first_function_is_outermost() -> None:
    notes: list[str] = []

    async def send() -> dict[str, Any]:
        notes.append("sent")
        return {"content": []}

    around = around_all([noting("first", notes), noting("second", notes)])
    assert around is not None
    assert await around(CALL, send) == {"content": []}
    assert notes == ["first begins tools/call", "second begins tools/call", "sent", "second ends", "first ends"]


def test_one_function_is_returned_itself_and_none_of_none() -> None:
    function = noting("only", [])
    assert around_all([function]) is function
    assert around_all([]) is None
