"""What transforms make of features on their way into a catalog."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from funcmcp import MCPServer, RegistrationError
from funcmcp._server.catalog.features import Skill
from funcmcp._server.catalog.registry import Registry
from funcmcp._server.catalog.transformed import TransformedFeatures
from funcmcp._serving.composition import runtime_of
from funcmcp.content import ResourceInfo
from funcmcp.extensions import Extension
from funcmcp.testing import Client
from funcmcp.transforms import Rename, Transform
from tests.server.parts import resource, tool

pytestmark = pytest.mark.branches("Features pass one transform after another.")


def shop() -> MCPServer:
    mcp = MCPServer("shop")
    mcp.tool("add", tags={"read"})(lambda: "add")
    mcp.tool("remove")(lambda: "remove")
    mcp.resource("data://info", name="info")(lambda: "info")
    mcp.resource("data://days/{day}", name="day")(lambda day: day)
    mcp.prompt("greet")(lambda: "Hello.")

    @mcp.resource_lister("data")
    def days() -> list[ResourceInfo]:
        return [ResourceInfo("data://days/today", name="today")]

    return mcp


def only_reading(feature: Any) -> Any:
    return feature if "read" in feature.tags else None


def twice(feature: Any) -> Any:
    if not hasattr(feature, "name"):
        return [feature]
    name = f"{feature.name}_too"
    return [feature, replace(feature, name=name, describe=lambda: {**feature.describe(), "name": name})]


async def tool_names(mcp: MCPServer) -> list[str]:
    return [tool.name for tool in await mcp.list_tools()]


async def test_a_transform_returns_one_feature_several_or_none() -> None:
    mcp = shop()
    mcp.add_transform(only_reading)
    mcp.add_transform(twice)
    assert await tool_names(mcp) == ["add", "add_too"]
    assert (await mcp.call_tool("add_too")).text == "add"
    assert await mcp.list_prompts() == []
    assert [resource.uri for resource in await mcp.list_resources()] == ["data://days/today"]


async def test_a_transform_applies_to_features_that_come_later() -> None:
    mcp = shop()
    mcp.add_transform(twice)
    mcp.tool("late")(lambda: "late")
    assert await tool_names(mcp) == ["add", "add_too", "remove", "remove_too", "late", "late_too"]
    mcp.remove_tool("late")
    mcp.remove_resource("data://info")
    mcp.remove_resource("data://days/{day}")
    mcp.remove_prompt("greet")
    assert await tool_names(mcp) == ["add", "add_too", "remove", "remove_too"]
    assert await mcp.list_resource_templates() == []
    with pytest.raises(KeyError):
        mcp.remove_tool("late")


async def test_a_name_that_a_transform_takes_is_refused_and_nothing_changes() -> None:
    mcp = shop()
    mcp.add_transform(twice)
    before = await tool_names(mcp)
    with pytest.raises(RegistrationError, match="Duplicate tool name 'add_too'"):
        mcp.tool("add_too")(lambda: "other")
    with pytest.raises(RegistrationError, match="Duplicate tool name"):
        mcp.add_transform(Rename({"add": "remove"}))
    with pytest.raises(RegistrationError, match="Duplicate name or URI 'add'"):
        mcp.tool("add")(lambda: "other")
    assert await tool_names(mcp) == before
    assert len(mcp._server.catalog.transforms) == 1


async def later(feature: Any) -> Any:
    return feature


def test_what_is_not_a_transform_is_refused() -> None:
    mcp = shop()
    assert list(mcp._server.catalog.transforms) == []
    with pytest.raises(TypeError, match="A transform is a function or a Transform, not int"):
        mcp.add_transform(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"A transform is an object, not a class. Write Rename\(\.\.\.\)"):
        mcp.add_transform(Rename)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="A transform must not be async: later"):
        mcp.add_transform(later)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="transforms must be a list of transforms, not one"):
        MCPServer("above").mount(mcp, transforms=Rename({"add": "sum"}))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="A transform returns features, a list of them, or None, not str"):
        mcp.add_transform(lambda _feature: ["add"])  # type: ignore[list-item]


async def test_the_base_class_changes_nothing() -> None:
    mcp = shop()
    before = await tool_names(mcp)
    mcp.add_transform(Transform())
    assert await tool_names(mcp) == before
    assert Transform().source_key(str, "add") == "add"


class WithTool(Transform):
    def __init__(self, tool: Any) -> None:
        self.tool = tool

    def features(self) -> list[Any]:
        return [self.tool]


async def test_a_transform_adds_features_which_later_transforms_change() -> None:
    mcp, other = shop(), MCPServer("other")
    other.tool("extra")(lambda: "extra")
    mcp.add_transform(WithTool(other._server.catalog.tools.get("extra")))
    mcp.add_transform(twice)
    assert (await tool_names(mcp))[-2:] == ["extra", "extra_too"]
    assert (await mcp.call_tool("extra_too")).text == "extra"


async def test_hidden_features_stay_hidden_behind_a_transform() -> None:
    mcp = shop()
    mcp.disable({"remove"})
    mcp.add_transform(twice)
    mcp.tool("last", enabled=False)(lambda: "")
    assert await tool_names(mcp) == ["add", "add_too", "remove_too"]
    mcp.enable()
    assert await tool_names(mcp) == ["add", "add_too", "remove", "remove_too", "last", "last_too"]


async def test_a_mounted_server_has_transforms_of_its_own_and_of_its_mount() -> None:
    mounted, above = shop(), MCPServer("above")
    above.mount(mounted, "shop", transforms=[only_reading])
    mounted.add_transform(twice)
    mounted.tool("late", tags={"read"})(lambda: "late")
    assert await tool_names(above) == ["shop_add", "shop_add_too", "shop_late", "shop_late_too"]
    mounted.remove_tool("late")
    assert await tool_names(above) == ["shop_add", "shop_add_too"]
    assert (await above.call_tool("shop_add_too")).text == "add"


async def test_clients_are_notified_of_what_a_transform_changes() -> None:
    mcp = shop()
    changes = runtime_of(mcp).server.hub.add(lambda _: True)
    mcp.add_transform(only_reading)
    assert {change.method for change in changes.take()} == {
        f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts")
    }
    async with Client(mcp) as client:
        assert [tool.name for tool in await client.list_tools()] == ["add"]


def twice_and_taken(feature: Any) -> Any:
    return [replace(feature, name="free"), replace(feature, name="taken")] if feature.key == "new" else feature


async def test_of_several_features_none_is_added_if_one_name_is_taken() -> None:
    mcp = MCPServer("shop")
    mcp.tool("taken")(lambda: "taken")
    mcp.add_transform(twice_and_taken)
    with pytest.raises(RegistrationError, match="Duplicate tool name 'taken'"):
        mcp.tool("new")(lambda: "new")
    assert await tool_names(mcp) == ["taken"]


async def test_a_feature_is_removed_with_what_became_of_it() -> None:
    mounted, above = shop(), MCPServer("above")
    above.add_transform(twice)
    above.mount(mounted, transforms=[only_reading])
    assert await tool_names(above) == ["add", "add_too"]
    mounted.remove_tool("add")
    assert await tool_names(above) == []


def test_nothing_remains_of_transforms_that_can_not_be_applied() -> None:
    class Adds(Transform):
        def __init__(self, *names: str) -> None:
            self.names = names

        def features(self) -> list[Any]:
            return [tool(name) for name in self.names]

    catalog = runtime_of(shop()).server.catalog
    with pytest.raises(RegistrationError, match="Duplicate tool name 'remove'"):
        TransformedFeatures(catalog.add, catalog.remove, [Adds("first"), Adds("second", "remove")])
    assert [feature.name for feature in catalog.tools] == ["add", "remove"]


async def test_skills_and_methods_of_extensions_pass_transforms() -> None:
    mcp = MCPServer("shop", extensions=[Extension("com.example/shop")])
    catalog = runtime_of(mcp).server.catalog
    file = resource("skill://s/SKILL.md")
    catalog.add(file)
    catalog.add(Skill(file.uri, lambda: {"uri": file.uri}, (file,)))

    @mcp.method("com.example/shop/open")
    def is_open() -> dict[str, bool]:
        return {"open": True}

    mcp.add_transform(Transform())
    mcp.add_transform(lambda feature: feature)
    async with Client(mcp, extensions=["com.example/shop"]) as client:
        assert [skill["uri"] for skill in (await client.request("skills/list"))["skills"]] == [file.uri]
        assert (await client.request("com.example/shop/open"))["open"] is True


def test_names_that_change_without_end_leave_nothing_behind() -> None:
    registry: Registry[Any] = Registry("tool")
    features = TransformedFeatures(registry.add, registry.discard)
    registry.add(tool("send"))
    for number in range(10):
        features.add(tool("SEND", position=(1, number)))
        features.add(tool(f"t{number}", position=(1, 10 + number)))
        features.clear()
    assert registry._waiting == features._names == {}


def test_the_work_to_remove_features_grows_with_their_number_and_not_with_its_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another server may list many variants of one name, which wait for each other."""
    added: list[Any] = []
    add = Registry.add

    def counted(registry: Registry[Any], feature: Any) -> None:
        added.append(feature)
        add(registry, feature)

    monkeypatch.setattr(Registry, "add", counted)
    registry: Registry[Any] = Registry("tool")
    features = TransformedFeatures(registry.add, registry.discard)
    for number in range(64):
        name = "".join(letter.upper() if number >> place & 1 else letter for place, letter in enumerate("friend"))
        features.add(tool(name, position=(1, number)))
    assert len(registry.waiting()) == 63
    features.add_transform(lambda feature: feature)
    features.clear()
    assert (len(added), registry.every()) == (2 * 64, [])
