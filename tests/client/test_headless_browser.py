"""A user without a person: pages that go on, and pages that end the sign-in."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from funcmcp.client import SignInError
from funcmcp.testing import allow_sign_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FORM = '<h1>Allow?</h1><form method="post" action="/consent"><input type="hidden" name="token" value="a&amp;b"></form>'


@asynccontextmanager
async def answering(*answers: tuple[int, str, str]) -> AsyncIterator[tuple[str, list[str]]]:
    """Answer requests with a status, a location and a body, in this order; give the origin and the requests."""
    requests: list[str] = []
    remaining = list(answers)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next((int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:")), 0)
        requests.append(f"{head.split(' HTTP')[0]} {(await reader.readexactly(length)).decode()}".strip())
        status, location, body = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        field = f"location: {location.format(origin=origin)}\r\n" if location else ""
        writer.write(
            f"HTTP/1.1 {status} X\r\n{field}content-length: {len(body)}\r\nconnection: close\r\n\r\n{body}".encode()
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield origin, requests


def address(origin: str, **parameters: str) -> str:
    return f"{origin}/oauth/authorize?{urlencode(parameters)}"


async def test_the_user_allows_and_returns() -> None:
    back = "http://127.0.0.1:1/back"  # nothing listens there
    async with answering((200, "", FORM), (303, "/callback?code=1", ""), (302, f"{back}?code=c&state=s", "")) as (
        origin,
        requests,
    ):
        assert await allow_sign_in(address(origin, redirect_uri=back)) == {"code": "c", "state": "s"}
    assert requests[1:] == ["POST /consent token=a%26b&decision=allow", "GET /callback?code=1"]


async def test_a_client_that_listens_gets_the_parameters() -> None:
    async with answering((302, "{origin}/back?code=c", ""), (200, "", "Done")) as (origin, requests):
        assert await allow_sign_in(address(origin, redirect_uri=f"{origin}/back")) == {"code": "c"}
    assert requests[-1] == "GET /back?code=c"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((400, "", "<h1>The server does not know your application</h1>"), "does not know your application"),
        ((200, "", "<h1>Who are you?</h1>"), "Who are you\\?"),
        ((500, "", FORM.replace("Allow?", "\x1b[31m")), "does not go on"),
        ((404, "", ""), "HTTP status 404"),
        (
            (302, "https://login.example.com/authorize", ""),
            "leads to https://login.example.com, and allow_sign_in visits",
        ),
        ((302, "//evil.example/", ""), "leads to http://evil.example"),
        ((302, "http://127.0.0.1@evil.example/", ""), "visits this machine only"),
        ((302, "cursor://back?code=1", ""), "visits this machine only"),
        ((302, "/again", ""), "more than 20 pages"),
        ((200, "", FORM.replace("/consent", "https://evil.example/consent")), "leads to https://evil.example"),
    ],
)
async def test_a_sign_in_that_does_not_go_on_is_an_error(answer: tuple[int, str, str], reason: str) -> None:
    async with answering(answer) as (origin, _):
        with pytest.raises(SignInError, match=reason) as error:
            await allow_sign_in(address(origin))
    assert "\x1b" not in str(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://login.example.com/authorize",
        "http://127.0.0.1.evil.example/",
        "http://localhost@evil.example/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "",
    ],
)
async def test_only_this_machine_is_visited(url: str) -> None:
    with pytest.raises(SignInError, match="visits this machine only"):
        await allow_sign_in(url)
