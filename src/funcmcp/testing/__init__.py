"""Helpers for tests: the client of `funcmcp.client`, answers to a server's questions, signed-in users, tests of stores.

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

import asyncio
import sys
from typing import TYPE_CHECKING, Any

from funcmcp._client.answers import Answers
from funcmcp._client.cassettes import Cassette, CassetteError
from funcmcp._client.http_messages import MemoryRequest, post, read_messages
from funcmcp._client_api.connection import Client
from funcmcp._objects.public_names import lazy_names
from funcmcp._protocol.revisions import REVISIONS as _REVISIONS
from funcmcp._protocol.revisions import released as _released
from funcmcp.testing._cassette_server import CassetteServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from funcmcp._client.answers import Callback
    from funcmcp._client.headless_browser import allow_sign_in
    from funcmcp._state.key_values import StateStore
    from funcmcp._state.tasks.store import TaskStore
    from funcmcp.testing._grants import grant_tokens
    from funcmcp.testing._signed_in import SignedIn

__all__ = [
    "REVISIONS",
    "Answers",
    "Cassette",
    "CassetteError",
    "CassetteServer",
    "Client",
    "MemoryRequest",
    "SignedIn",
    "accept",
    "allow_sign_in",
    "cancel",
    "decline",
    "grant_tokens",
    "post",
    "read_messages",
    "state_store_tests",
    "task_store_tests",
]

_HOMES = {
    "_client.headless_browser": ["allow_sign_in"],
    "testing._grants": ["grant_tokens"],
    "testing._signed_in": ["SignedIn"],
}
"""The names that few tests need, by module."""

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)

_STATE_RULES = "funcmcp.testing._state_stores"
_TASK_RULES = "funcmcp.testing._task_stores"
REVISIONS = tuple(_released(_REVISIONS))
"""The dates of the protocol revisions, oldest first, for ``@pytest.mark.parametrize("revision", REVISIONS)``.

Drafts are left out.
"""


def accept(*contents: Any) -> Callback:
    """Return a callback for ``Client(elicit=...)`` that accepts questions with these contents.

    Args:
        contents: The answers' contents, in the order of the questions: a dict, or an object of the form's type. For
            a form with a single field the value itself, such as ``accept("Bob")`` or ``accept(5)``. A question of the
            mode "url" needs ``{}``.

    Raises:
        AssertionError: The server asks more questions than there are contents, or a form has several fields and its
            content is a single value. The callback raises it.
    """
    remaining = list(contents)

    async def answer(params: dict[str, Any]) -> dict[str, Any]:
        if not remaining:
            raise AssertionError(f"The server asks one question more than the test answers: {params.get('message')!r}")
        content = remaining.pop(0)
        if params.get("mode") == "url":
            return {"action": "accept"}
        return {"action": "accept", "content": _form_content(content, params)}

    return answer


def _form_content(content: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of an answer as the fields of the form that a question has."""
    from funcmcp._authoring.results.result_writer import jsonable  # noqa: PLC0415 - loads pydantic

    value = jsonable(content)
    if isinstance(value, dict):
        return value
    fields = list(params.get("requestedSchema", {}).get("properties", {}))
    if len(fields) == 1:
        return {fields[0]: value}
    raise AssertionError(
        f"The question {params.get('message')!r} is a form with the fields {', '.join(fields)}; got {content!r}. "
        "Pass a dict or an object with these fields."
    )


async def decline(_params: dict[str, Any]) -> dict[str, Any]:
    """Decline a question: ``Client(elicit=decline)``."""
    return {"action": "decline"}


async def cancel(_params: dict[str, Any]) -> dict[str, Any]:
    """Cancel a question, as a person does who closes the form: ``Client(elicit=cancel)``."""
    return {"action": "cancel"}


def state_store_tests(
    stores: Callable[[], AbstractAsyncContextManager[Callable[[], StateStore]]],
    *,
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    name: str = "TestStateStore",
) -> type:
    """Return a class of tests for pytest, which prove that a store of state keeps the rules.

    Needs pytest, and no plugin. See guides/state.md.

    Args:
        stores: Returns an async context manager. Its value is a function that returns a store with the values of one
            place, such as a database. The tests call it twice, as two processes would. They close the stores.
        wait: Lets so many seconds pass for the stores. For stores with a clock that the tests set.
        name: The name of the class.

    Example:
        ```python
        TestMyState = state_store_tests(stores)
        ```
    """
    import pytest  # noqa: PLC0415 - nothing else here needs it

    if _STATE_RULES not in sys.modules:
        pytest.register_assert_rewrite(_STATE_RULES)  # so that a failure shows the values
    from funcmcp.testing._state_stores import test_class  # noqa: PLC0415 - the line before concerns its import

    return test_class(stores, wait, name)


def task_store_tests(
    stores: Callable[[], AbstractAsyncContextManager[Callable[..., TaskStore]]],
    *,
    wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    name: str = "TestTaskStore",
) -> type:
    """Return a class of tests for pytest, which prove that a store of tasks keeps the rules.

    Needs pytest, and no plugin. See guides/tasks.md.

    Args:
        stores: Returns an async context manager for a place without tasks, such as an empty database. Its value is a
            function that returns a store with the tasks of this place. The tests call it several times, as several
            processes would, with the options ``limits`` and ``lease``. They close the stores.
        wait: Lets so many seconds pass for the stores. For stores with a clock that the tests set.
        name: The name of the class.

    Example:
        ```python
        TestMyTasks = task_store_tests(stores)
        ```
    """
    import pytest  # noqa: PLC0415 - nothing else here needs it

    if _TASK_RULES not in sys.modules:
        pytest.register_assert_rewrite(_TASK_RULES)  # so that a failure shows the values
    from funcmcp.testing._task_stores import test_class  # noqa: PLC0415 - the line before concerns its import

    return test_class(stores, wait, name)
