"""A shortcut around a coroutine method never skips a method that a subclass overrides."""

from __future__ import annotations

from funcmcp._at_once import at_once


class Store:
    """A store with a shortcut."""

    async def get(self) -> int:
        """Return the value."""
        return 1

    def get_at_once(self) -> int:
        """Return the value."""
        return 1


class CheckedStore(Store):
    """A store that overrides the coroutine method alone."""

    async def get(self) -> int:
        """Return another value."""
        return 2


class FastStore(CheckedStore):
    """A store that overrides the shortcut, too."""

    def get_at_once(self) -> int:
        """Return the other value."""
        return 2


class OtherStore(Store):
    """A store that overrides neither."""


def test_a_shortcut_is_used_unless_a_subclass_overrides_the_coroutine_method_alone() -> None:
    assert at_once(Store(), "get_at_once", before="get")() == 1
    assert at_once(OtherStore(), "get_at_once", before="get")() == 1
    assert at_once(CheckedStore(), "get_at_once", before="get") is None
    assert at_once(FastStore(), "get_at_once", before="get")() == 2


def test_an_object_without_a_shortcut_has_none() -> None:
    assert at_once(object(), "get_at_once", before="get") is None
