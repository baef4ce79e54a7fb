"""Helpers for tests of MCP servers: the client of `funcmcp.client`, and answers to the questions of a server.

Example:
    ```python
    @pytest.mark.parametrize("revision", REVISIONS)
    async def test_greet(revision: str) -> None:
        async with Client(mcp, revision=revision, elicit=accept({"name": "Ada"})) as client:
            result = await client.call_tool("greet")
        assert result.text == "Hello, Ada!"
    ```

See guides/testing.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._client.answers import Answers
from funcmcp._client.connection import Client
from funcmcp._client.streamable_http import MemoryRequest, post, read_messages
from funcmcp._protocol.revisions import REVISIONS as _REVISIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._client.answers import Callback

__all__ = ["REVISIONS", "Answers", "Client", "MemoryRequest", "accept", "cancel", "decline", "post", "read_messages"]

REVISIONS = tuple(sorted(_REVISIONS))
"""The dates of all protocol revisions, oldest first, for ``@pytest.mark.parametrize("revision", REVISIONS)``."""


def accept(*contents: Mapping[str, Any]) -> Callback:
    """Return a callback for ``Client(elicit=...)`` that accepts questions with these contents.

    Args:
        contents: The answers' contents, in the order of the questions. A question of the mode "url" needs ``{}``.

    Raises:
        AssertionError: The server asks more questions than there are contents. The callback raises it.
    """
    remaining = list(contents)

    async def answer(params: dict[str, Any]) -> dict[str, Any]:
        if not remaining:
            raise AssertionError(f"The server asks one question more than the test answers: {params.get('message')!r}")
        content = remaining.pop(0)
        if params.get("mode") == "url":
            return {"action": "accept"}
        return {"action": "accept", "content": dict(content)}

    return answer


async def decline(_params: dict[str, Any]) -> dict[str, Any]:
    """Decline a question: ``Client(elicit=decline)``."""
    return {"action": "decline"}


async def cancel(_params: dict[str, Any]) -> dict[str, Any]:
    """Cancel a question, as a person does who closes the form: ``Client(elicit=cancel)``."""
    return {"action": "cancel"}
