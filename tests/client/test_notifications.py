"""Notifications as Python objects, from servers that send anything."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._client.notifications import LogMessage, ProgressUpdate, log_message_of, progress_of


def test_progress_has_its_members() -> None:
    params = {"progressToken": 1, "progress": 1, "total": 2.5, "message": "half"}
    assert progress_of(params) == ProgressUpdate(1, 2.5, "half")
    assert progress_of({"progress": 0}) == ProgressUpdate(0, None, None)


@pytest.mark.parametrize("value", [None, "1", [], {}, True])
def test_progress_that_is_not_a_number_is_no_update(value: object) -> None:
    assert progress_of({"progress": value}) is None
    assert progress_of({"progress": 1, "total": value, "message": 5}) == ProgressUpdate(1)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"level": "error", "data": {"a": 1}, "logger": "db"}, LogMessage("error", {"a": 1}, "db")),
        ({"level": "info", "data": "hello"}, LogMessage("info", "hello")),
        ({"level": 5, "logger": 5}, LogMessage("5", None)),
        ({}, LogMessage("info", None)),
    ],
)
def test_log_messages_have_their_members(params: dict[str, Any], message: LogMessage) -> None:
    assert log_message_of(params) == message
