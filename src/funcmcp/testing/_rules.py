"""Classes for pytest whose tests are the rules of a store."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def class_of_rules(rules: type, run: Callable[[str], None], name: str) -> type:
    """Return a class with a test for each rule, in their order.

    Args:
        rules: The class whose async methods are the rules.
        run: Runs the rule of a name.
        name: The name of the class.
    """
    names = [name for name, _ in inspect.getmembers(rules, inspect.iscoroutinefunction) if name.startswith("test_")]
    names.sort(key=list(vars(rules)).index)

    def test_of(rule: str) -> Callable[[object], None]:
        def test(_self: object) -> None:
            run(rule)

        test.__name__ = test.__qualname__ = rule
        return test

    return type(name, (), {rule: test_of(rule) for rule in names})
