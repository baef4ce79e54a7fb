"""The features of a server, and the capabilities that follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._auth.access import Access
from funcmcp._server.catalog.catalog import Catalog
from funcmcp._server.catalog.features import ResourceLister
from funcmcp._server.connections.hub import PROMPTS, RESOURCES, TOOLS
from funcmcp._server.options import ProtocolOptions, ServerOptions
from tests.server.parts import prompt, resource, template, tool

if TYPE_CHECKING:
    from funcmcp._server.connections.hub import Change


async def nothing(_context: Any) -> list[dict[str, Any]]:
    return []


def catalog(published: list[Change] | None = None) -> Catalog:
    return Catalog(
        ServerOptions("orders", protocol=ProtocolOptions(offer_tools=None)),
        ([] if published is None else published).append,
    )


@pytest.mark.parametrize(
    ("feature", "capability", "change"),
    [
        (tool("t"), "tools", TOOLS),
        (prompt("p"), "prompts", PROMPTS),
        (resource("menu://a"), "resources", RESOURCES),
        (template("menu://{a}"), "resources", RESOURCES),
        (ResourceLister("menu", nothing), "resources", RESOURCES),
    ],
)
def test_a_capability_is_there_as_long_as_its_features(feature: Any, capability: str, change: Change) -> None:
    published: list[Change] = []
    features = catalog(published)
    assert features.offered == {"logging"}
    features.add(feature)
    assert features.offered == {"logging", capability} | ({"subscriptions"} if capability == "resources" else set())
    registry = next(
        registry
        for registry in (features.tools, features.prompts, features.resources, features.templates, features.listers)
        if len(registry)
    )
    registry.remove(feature.key)
    assert features.offered == {"logging"}
    assert published == [change, change]


def test_features_for_anonymous_callers_and_interactive_ones_are_counted() -> None:
    features = catalog()
    for number in range(2):
        features.add(tool(f"t{number}", access=Access(allow_anonymous=True), interactive=True))
    features.add(prompt("p"))
    for number in range(2):
        assert features.has_anonymous
        assert features.has_interactive
        features.tools.remove(f"t{number}")
    assert not features.has_anonymous
    assert not features.has_interactive


def test_completions_follow_what_completes_and_is_offered() -> None:
    features = catalog()
    features.add(prompt("p", completers=("a",)))
    features.add(template("menu://{a}", completers={"a": nothing}))
    assert "completions" in features.offered
    features.prompts.remove("p")
    assert "completions" in features.offered
    features.templates.remove("menu://{a}")
    assert "completions" not in features.offered


def test_features_are_yielded_in_the_order_of_kinds() -> None:
    features = catalog()
    for feature in (prompt("p"), template("menu://{a}"), resource("menu://a"), tool("t")):
        features.add(feature)
    assert [feature.key for feature in features.features()] == ["t", "menu://a", "menu://{a}", "p"]


def test_adding_many_features_does_not_look_at_those_that_are_there() -> None:
    """The catalog iterates over no registry when a feature is added."""
    features = catalog()

    class Watched(dict[str, Any]):
        def values(self) -> Any:
            raise AssertionError("The features were counted again.")

    features.tools._features = Watched()
    for number in range(3):
        features.tools.add(tool(f"t{number}"))
    assert len(features.tools) == 3
