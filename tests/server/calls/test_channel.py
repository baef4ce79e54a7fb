"""The channel that refuses."""

from __future__ import annotations

import pytest

from funcmcp._protocol.errors import ToolError
from funcmcp._server.calls.channel import ClosedChannel
from tests.server.parts import ASK_NAME


async def test_a_closed_channel_drops_notifications_without_an_error() -> None:
    await ClosedChannel().notify("notifications/message", {"level": "info", "data": "hello"})


async def test_a_closed_channel_refuses_questions_in_words_for_the_model() -> None:
    with pytest.raises(ToolError, match="can't be asked"):
        await ClosedChannel().ask({"name": ASK_NAME})
