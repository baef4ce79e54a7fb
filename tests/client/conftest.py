"""The server with an authorization server that the tests of the sign-in share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.client.authorizing import Authorizing, authorizing

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def shared_server() -> Iterator[Authorizing]:
    with authorizing() as server:
        yield server


@pytest.fixture
def server(shared_server: Authorizing) -> Authorizing:
    """Return the shared server as if it had just started."""
    shared_server.reset()
    return shared_server
