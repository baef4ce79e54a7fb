"""Every transcript is played again: the server must say what it said then, and every message must be valid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from funcmcp._protocol.methods import methods_of
from tests.schemas import REVISIONS
from tests.transcripts.play import LINE, Player
from tests.transcripts.scenarios import SCENARIOS
from tests.wire.peer import PER_REQUEST

FOLDER = Path(__file__).parent
FILES = {f"{path.parent.name}/{path.stem}": path for path in sorted(FOLDER.glob("*/*.txt"))}
NOTIFICATIONS = {
    "notifications/cancelled",
    "notifications/message",
    "notifications/progress",
    "notifications/resources/updated",
    *(f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts")),
}
EXTENSIONS = ("tasks/", "skills/", "resources/directory/")
"""Methods that the server of the transcripts does not have."""


def read(name: str) -> list[str]:
    return FILES[name].read_text(encoding="utf-8").splitlines()


def meaning(line: str) -> object:
    """Return a line so that two of the same meaning are the same: the order of members does not count."""
    found = LINE.fullmatch(line)
    if found is None or not found[3].startswith(("{", "[")):
        return line
    return found[1], found[2], json.loads(found[3])


def messages(name: str) -> list[dict[str, Any]]:
    """Return every message of a transcript, those of batches one by one."""
    said = [found[3] for found in map(LINE.fullmatch, read(name)) if found]
    decoded = [json.loads(text) for text in said if text.startswith(("{", "["))]
    return [one for message in decoded for one in (message if isinstance(message, list) else [message])]


def of(revision: str) -> list[str]:
    return [name for name in FILES if name.startswith(revision)]


@pytest.mark.parametrize("name", FILES)
async def test_the_server_says_what_it_said(name: str) -> None:
    lines = read(name)
    again = await Player(name.partition("/")[0]).play(lines)
    for before, now in zip(lines, again, strict=True):
        assert meaning(now) == meaning(before)


def test_there_is_a_transcript_of_every_scenario_and_no_other() -> None:
    assert set(FILES) == {f"{revision}/{one.name}" for one in SCENARIOS for revision in one.revisions}


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_method_of_a_revision_has_a_result_in_its_transcripts(revision: str) -> None:
    asked = set()
    for name in of(revision):
        answered = {message["id"] for message in messages(name) if "result" in message}
        asked |= {
            message["method"] for message in messages(name) if "method" in message and message.get("id") in answered
        }
    without_transcripts = {method for method in methods_of(revision) if method.startswith(EXTENSIONS)}
    assert set(methods_of(revision)) - without_transcripts <= asked


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_notification_of_a_revision_is_in_its_transcripts(revision: str) -> None:
    said = [message for name in of(revision) for message in messages(name)]
    told = {message["method"] for message in said if "method" in message and "id" not in message}
    if revision == PER_REQUEST:
        expected = NOTIFICATIONS - {"notifications/cancelled"} | {"notifications/subscriptions/acknowledged"}
    else:
        expected = NOTIFICATIONS | {"notifications/initialized"}
    assert told == expected


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ('1< {"jsonrpc": "2.0", "id": 1, "result": {}}', '1< {"jsonrpc": "2.0", "id": 1, "result": {"more": 1}}'),
        ("1< 200 application/json", "1< 404 application/json"),
    ],
)
async def test_a_transcript_that_says_something_else_is_noticed(line: str, other: str) -> None:
    lines = read("2025-11-25/ping")
    assert line in lines
    wrong = [other if one == line else one for one in lines]
    again = await Player("2025-11-25").play(wrong)
    assert [meaning(one) for one in again] != [meaning(one) for one in wrong]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_message_that_a_transcript_leaves_out_is_noticed(revision: str) -> None:
    lines = read(f"{revision}/tools-call")
    last = max(number for number, line in enumerate(lines) if line.startswith("1< {"))
    with pytest.raises(AssertionError, match="more was said"):
        await Player(revision).play(lines[:last] + lines[last + 1 :])


async def test_a_message_of_the_client_that_is_not_valid_is_noticed() -> None:
    lines = read("2025-11-25/ping")
    wrong = [line.replace('"method": "ping"', '"method": "ping", "params": 5') for line in lines]
    assert wrong != lines
    with pytest.raises(AssertionError, match="not a"):
        await Player("2025-11-25").play(wrong)
