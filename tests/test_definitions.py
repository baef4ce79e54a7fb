"""Definitions: immutable objects with the constructor of a dataclass."""

from __future__ import annotations

import re
from typing import Any

import pytest

from funcmcp._definitions import Definition


class Dish(Definition, kw_only=True):
    price: float = 1.0
    vegetarian: bool = False


class Soup(Dish):
    name: str
    spoons: int = 1


def test_values_are_taken_by_position_in_the_order_of_their_declaration_and_by_name() -> None:
    assert vars(Soup("Minestrone", 2, price=6.5)) == {
        "price": 6.5,
        "vegetarian": False,
        "name": "Minestrone",
        "spoons": 2,
    }
    assert Soup(name="Minestrone").spoons == 1


@pytest.mark.parametrize(
    ("positional", "named"),
    [((), {}), (("a", 1, 2.0), {}), (("a",), {"colour": "red"}), ((), {"spoons": 1})],
    ids=["nothing", "a keyword-only value by position", "an unknown name", "a required value is missing"],
)
def test_an_invalid_call_names_the_parameters(positional: tuple[Any, ...], named: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=re.escape("Soup takes the parameters name, price, spoons, vegetarian.")):
        Soup(*positional, **named)


def test_an_attribute_can_not_be_changed() -> None:
    soup = Soup("Minestrone")
    with pytest.raises(AttributeError, match=re.escape("Soup.name can't be changed.")):
        soup.name = "Gazpacho"  # type: ignore[misc]
    assert soup.name == "Minestrone"


def test_a_copy_may_have_other_values() -> None:
    soup = Soup("Minestrone", price=6.5)
    cold = soup.replace(name="Gazpacho")
    assert (cold.name, cold.price, soup.name) == ("Gazpacho", 6.5, "Minestrone")
    with pytest.raises(TypeError):
        soup.replace(colour="red")


def test_the_representation_is_the_call_of_the_constructor() -> None:
    assert repr(Soup("Minestrone", 2)) == "Soup(price=1.0, vegetarian=False, spoons=2, name='Minestrone')"
