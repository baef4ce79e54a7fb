"""A feature that takes the place of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from funcmcp import MCPServer
from funcmcp._server.catalog.registry import Registry
from funcmcp._serving.composition import runtime_of
from funcmcp.transforms import Rename
from tests.server.parts import tool

if TYPE_CHECKING:
    from funcmcp._server.catalog.features import Tool


def test_one_of_several_versions_is_exchanged() -> None:
    registry: Registry[Tool] = Registry("tool")
    old, new, replacement = (tool("a", version=version) for version in ("1", "2", "1"))
    registry.add(old)
    registry.add(new)
    registry.exchange(old, replacement)
    assert [version is replacement for version in registry.versions_of("a")].count(True) == 1
    assert registry.get("a") is new


@pytest.mark.parametrize("replacement", [tool("b"), tool("a", version="2")])
def test_another_name_or_version_is_no_replacement(replacement: Tool) -> None:
    registry: Registry[Tool] = Registry("tool")
    feature = tool("a")
    registry.add(feature)
    with pytest.raises(KeyError):
        registry.exchange(feature, replacement)


def test_a_hidden_feature_stays_hidden() -> None:
    registry: Registry[Tool] = Registry("tool")
    feature, replacement = tool("a"), tool("a")
    registry.is_visible = lambda _: False
    registry.add(feature)
    registry.exchange(feature, replacement)
    assert registry.get("a") is None


def test_what_transforms_have_changed_is_exchanged_with_them() -> None:
    mcp = MCPServer("shop")
    catalog = runtime_of(mcp).server.catalog
    feature, replacement = tool("a"), tool("a", tags=frozenset({"new"}))
    mcp.add_transform(Rename({"a": "b"}))
    catalog.add(feature)
    assert catalog.has(feature)
    catalog.exchange(feature, replacement)
    assert [(one.name, one.tags) for one in catalog.tools] == [("b", frozenset({"new"}))]
