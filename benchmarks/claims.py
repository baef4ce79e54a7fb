"""Measure a sign-in of `OAuthProxy` whose user has many groups: the size of its tokens and records, and its times.

The groups are GUIDs in the claim ``groups`` of the ID token, and are kept by ``claims=["groups"]``. The provider is a
script in this process, with RS256. The times are medians: of the token request with the code, of a refresh, of a call
whose token the process has not seen, and of one whose token it has.
"""

from __future__ import annotations

import asyncio
import platform
import sys
import uuid
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from funcmcp.auth import OIDC  # noqa: E402 - the provider of the tests is imported from this checkout
from funcmcp.state import MemorySignIns, SQLiteSignIns  # noqa: E402
from tests.auth.making_tokens import Clock  # noqa: E402
from tests.oauth_proxy.scripted import UserinfoHTTP, with_keys  # noqa: E402
from tests.oauth_proxy.stage import Stage  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from funcmcp.state import SignInStore

RESULTS = HERE / "results" / "claims.md"
GROUPS = (0, 10, 100, 200, 1000)
ROUNDS = 40


class Row(NamedTuple):
    """What was measured for a number of groups.

    Attributes:
        groups: The number.
        store: The store.
        cells: Characters of the ID token, the access token, the refresh token and the largest record; milliseconds of
            the sign-in, a refresh, the first call and the next one.
    """

    groups: int
    store: str
    cells: tuple[str, ...]


class Recording(MemorySignIns):
    """A store in memory that knows the size of its largest value."""

    def largest(self) -> int:
        """Return the characters of the largest value."""
        """Return the characters of the largest value."""
        return max(len(record.value) for record in self._records.values())


async def timed(work: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
    """Return the milliseconds that something takes, and its result."""
    start = perf_counter()
    result = await work()
    return (perf_counter() - start) * 1000, result


async def signed_in(count: int, store: SignInStore | None) -> tuple[Stage, UserinfoHTTP]:
    """Return a proxy whose next user has a number of groups."""
    http = UserinfoHTTP(userinfo_endpoint=None)
    http.claims = {"sub": "ada", "name": "Ada", "groups": [str(uuid.uuid4()) for _ in range(count)]}
    upstream = with_keys(OIDC(http.issuer, "app", "secret", clock=Clock()), http)
    stage = Stage(upstream=upstream, claims=["groups"], store=store)
    stage.upstream = http  # type: ignore[assignment]
    return await stage.with_client(), http


async def measure(count: int, name: str, store: SignInStore | None) -> Row:
    """Return the figures for a number of groups."""
    stage, http = await signed_in(count, store)
    times: dict[str, list[float]] = {"sign-in": [], "refresh": [], "first call": [], "call": []}
    tokens: dict[str, str] = {}
    for _ in range(ROUNDS):
        duration, answer = await timed(partial(stage.exchange, await stage.code()))
        if answer.status != 200:
            return Row(count, name, (f"{len(http.id_token()):,}", "refused", "-", "-", "-", "-", "-", "-"))
        times["sign-in"].append(duration)
        tokens = answer.json
        for kind in ("first call", "call"):
            duration, principal = await timed(partial(stage.caller_of, tokens["access_token"]))
            assert len(principal.claims["groups"]) == count
            times[kind].append(duration)
        duration, answer = await timed(partial(stage.refresh, tokens["refresh_token"]))
        assert answer.status == 200, answer.text
        times["refresh"].append(duration)
        stage.clock.now += 3000
    sizes = [f"{len(token):,}" for token in (http.id_token(), tokens["access_token"], tokens["refresh_token"])]
    record = f"{store.largest():,}" if isinstance(store, Recording) else "-"
    return Row(count, name, (*sizes, record, *(f"{median(values):.2f}" for values in times.values())))


async def rows(folder: str) -> list[Row]:
    """Return the figures for each number of groups and each store; those of SQLite are files in a folder."""
    measured = []
    for count in GROUPS:
        measured.append(await measure(count, "none", None))
        measured.append(await measure(count, "memory", Recording()))
        measured.append(await measure(count, "SQLite", SQLiteSignIns(Path(folder) / f"{count}.db")))
    return measured


def page(measured: list[Row]) -> str:
    """Return the page of the results."""
    version = platform.python_version()
    lines = [
        "# Claims of users with many groups",
        "",
        f"`python benchmarks/claims.py`, {platform.machine()}, Python {version}. Other programs used the machine.",
        "Sizes are characters, times are milliseconds (medians). The provider is a script, so the times are those of",
        "the proxy. A sign-in is the token request with the code, and includes the check of the ID token. *call*: the",
        "process has not seen the token before; *next*: it has.",
        "",
        "| groups | store | ID token | access token | refresh token | largest record | sign-in | refresh | call | next |",  # noqa: E501 - one row
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [f"| {row.groups:,} | {row.store} | {' | '.join(row.cells)} |" for row in measured]
    lines += [
        "",
        "*refused*: the groups have more than 4 KiB, which needs a store. The user and the log get the reason.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print and write the results."""
    with TemporaryDirectory() as folder:
        text = page(asyncio.run(rows(folder)))
    sys.stdout.write(text)
    RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
