"""A plugin for pytest, in the peer's environment."""

from __future__ import annotations

from typing import NoReturn

import _pytest.raises


def fail(reason: str, pytrace: bool = True) -> NoReturn:
    """Fail with an Exception: pytest's own is a BaseException, which ends anyio's runner, and so other tests."""
    raise AssertionError(reason)


_pytest.raises.fail = fail  # type: ignore[assignment, attr-defined]
