"""The bus inside one process."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._state.bus import LocalBus

pytestmark = pytest.mark.every_python("Tasks, timeouts and cancellation are those of asyncio.")


async def test_a_message_is_heard_by_the_others_that_subscribed_to_its_topic() -> None:
    here = LocalBus()
    there, far = here.beside(), here.beside()
    heard: list[Any] = []
    for name, bus in (("here", here), ("there", there), ("far", far)):
        await bus.ready()
        bus.subscribe("topic", lambda message, name=name: heard.append((name, message)))  # type: ignore[misc]
    here.publish("topic", {"number": 1})
    await far.send("topic", {"number": 2})
    far.publish("other topic", {"number": 3})
    assert heard == [
        ("there", {"number": 1}),
        ("far", {"number": 1}),
        ("here", {"number": 2}),
        ("there", {"number": 2}),
    ]


async def test_instances_have_different_names_and_one_that_is_alone_has_none() -> None:
    alone = LocalBus()
    assert alone.instance == ""
    assert len({alone.instance, alone.beside().instance, alone.beside().instance}) == 3


async def test_one_that_is_alone_tells_nobody() -> None:
    alone = LocalBus()
    heard: list[Any] = []
    alone.subscribe("topic", heard.append)
    alone.start()
    alone.publish("topic", {})
    await alone.send("topic", {})
    await alone.aclose()
    assert heard == []
