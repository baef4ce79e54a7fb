"""Features by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp._server.catalog.registry import RegistrationError, Registry
from tests.server.parts import tool

if TYPE_CHECKING:
    from funcmcp._server.catalog.features import Tool


@pytest.fixture
def registry() -> Registry[Tool]:
    made: Registry[Tool] = Registry("tool")
    for name in ("zebra", "add", "Multiply"):
        made.add(tool(name))
    return made


def test_features_come_in_the_order_of_their_registration(registry: Registry[Tool]) -> None:
    assert [one.name for one in registry] == ["zebra", "add", "Multiply"]
    assert len(registry) == 3


def test_look_up_is_exact(registry: Registry[Tool]) -> None:
    found = registry.get("Multiply")
    assert found is not None
    assert found.name == "Multiply"
    assert registry.get("multiply") is None
    assert registry.get("") is None


@pytest.mark.parametrize("name", ["add", "ADD", "\uff41dd"])
def test_a_name_that_looks_like_a_registered_one_is_refused(registry: Registry[Tool], name: str) -> None:
    with pytest.raises(RegistrationError, match="Duplicate tool name") as caught:
        registry.add(tool(name))
    assert ("differs from 'add' too little" in str(caught.value)) == (name != "add")
    assert len(registry) == 3


def test_an_error_says_what_the_key_is() -> None:
    registry: Registry[Tool] = Registry("resource", str, key_name="URI")
    registry.add(tool("menu"))
    with pytest.raises(RegistrationError) as caught:
        registry.add(tool("menu"))
    assert str(caught.value) == "Duplicate resource URI 'menu'. Give one of the two another URI."


def test_a_registration_error_is_a_value_error() -> None:
    assert issubclass(RegistrationError, ValueError)


def test_every_change_raises_the_version_and_a_refusal_does_not(registry: Registry[Tool]) -> None:
    before = registry.version
    registry.add(tool("subtract"))
    added = registry.version
    registry.remove("subtract")
    removed = registry.version
    with pytest.raises(RegistrationError):
        registry.add(tool("add"))
    assert before < added < removed == registry.version


def test_a_removed_name_is_free_again(registry: Registry[Tool]) -> None:
    registry.remove("add")
    assert registry.get("add") is None
    registry.add(tool("ADD"))
    assert [one.name for one in registry] == ["zebra", "Multiply", "ADD"]


def test_removing_what_is_not_there_is_a_key_error_and_changes_nothing(registry: Registry[Tool]) -> None:
    before = registry.version
    with pytest.raises(KeyError):
        registry.remove("Add")
    assert registry.version == before
    assert len(registry) == 3


def test_a_feature_may_be_added_while_somebody_looks_at_all(registry: Registry[Tool]) -> None:
    seen = []
    for one in registry:
        registry.add(tool(f"{one.name}-again"))
        seen.append(one.name)
    assert seen == ["zebra", "add", "Multiply"]
    assert len(registry) == 6


def test_a_listener_may_change_the_registry_while_visibility_changes() -> None:
    registry: Registry[Tool] = Registry("tool")
    hidden: set[str] = set()
    registry.is_visible = lambda feature: feature.key not in hidden
    for name in ("a", "b"):
        registry.add(tool(name))
    changes: list[tuple[str, int]] = []

    def follow(feature: Tool, count: int) -> None:
        changes.append((feature.key, count))
        if feature.key == "a":
            registry.remove("b")
            registry.add(tool("c"))

    registry.listeners.append(follow)
    hidden.update("ab")
    registry.update_visibility()
    assert changes == [("a", -1), ("b", -1), ("c", 1)]
    assert [feature.key for feature in registry] == ["c"]


def test_listeners_follow_hidden_features() -> None:
    registry: Registry[Tool] = Registry("tool")
    hidden = {"a"}
    registry.is_visible = lambda feature: feature.key not in hidden
    changes: list[tuple[str, int]] = []
    registry.hidden_listeners.append(lambda feature, count: changes.append((feature.key, count)))
    registry.add(tool("a"))
    registry.add(tool("b"))
    registry.remove("b")
    registry.remove("a")
    assert changes == [("a", 1), ("a", -1)]


def test_of_two_features_with_one_name_the_first_position_has_it() -> None:
    registry: Registry[Tool] = Registry("tool")
    changes: list[tuple[str, tuple[int, ...], int]] = []
    reasons: list[str] = []
    registry.listeners.append(lambda feature, count: changes.append((feature.key, feature.position, count)))
    registry.waiting_listeners.append(lambda feature, reason: reasons.append(f"{feature.position} {reason}"))
    second, third, first = (tool(name, position=(number,)) for name, number in (("Send", 2), ("send", 3), ("send", 1)))
    registry.add(second)
    registry.add(third)
    registry.add(first)
    assert changes == [("Send", (2,), 1), ("Send", (2,), -1), ("send", (1,), 1)]
    text = "Duplicate tool name {!r}, which differs from {!r} too little. Give one of the two another name."
    assert reasons == [f"(3,) {text.format('send', 'Send')}", f"(2,) {text.format('Send', 'send')}"]
    assert registry.every() == [first]
    assert registry.waiting() == [third, second]
    assert registry.rivals_of(tool("SEND")) == [first]
    assert all(map(registry.holds, (first, second, third)))
    with pytest.raises(RegistrationError, match="Duplicate tool name 'send'"):
        registry.add(tool("send", position=(1,)))
    registry.discard(second)
    assert not registry.holds(second)
    registry.add(second)
    registry.discard(first)
    assert (registry.every(), registry.waiting()) == ([second], [third])
    registry.remove("Send")
    assert (registry.every(), registry.waiting()) == ([third], [])
    assert registry.empty().rivals_of(third) == []


def test_a_feature_without_a_position_has_its_name_at_once_and_gives_it_back() -> None:
    registry: Registry[Tool] = Registry("tool")
    provided, own = tool("send", position=(0, 1)), tool("send")
    registry.add(provided)
    registry.add(own)
    assert registry.every() == [own]
    registry.remove("send")
    assert registry.every() == [provided]


def test_features_of_a_position_stay_when_a_mounting_server_refuses_the_one_with_their_name() -> None:
    registry: Registry[Tool] = Registry("tool")
    provided = tool("send", position=(0,))
    registry.add(provided)

    def refuse(feature: Tool, count: int) -> None:
        if count > 0 and not feature.position:
            raise RegistrationError("No.")

    registry.listeners.append(refuse)
    with pytest.raises(RegistrationError, match="No"):
        registry.add(tool("send"))
    assert registry.every() == [provided]


def test_features_are_in_the_order_of_their_positions() -> None:
    registry: Registry[Tool] = Registry("tool")
    for name, position in (("d", (1, 0)), ("c", (0, 1)), ("a", ()), ("b", (0, 0))):
        registry.add(tool(name, position=position))
    assert [feature.key for feature in registry] == ["a", "b", "c", "d"]
    assert [feature.key for feature in registry.every_version()] == ["a", "b", "c", "d"]
