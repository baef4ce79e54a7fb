"""The browser that the tests of the page share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.page.browser import running_browser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.page.browser import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with running_browser() as chromium:
        yield chromium
