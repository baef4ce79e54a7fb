"""What becomes of each public name of FastMCP and the official SDK follows from `funcmcp.compat` itself."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from funcmcp import compat
from funcmcp_cli.migrate import sentences
from funcmcp_cli.migrate.compat_names import (
    ACCEPTS_ANYTHING,
    SAME,
    can_be_set,
    class_of,
    home_of,
    import_verdict,
    member_verdict,
    option_verdict,
    original_names,
    override_verdict,
    probed_methods,
    target_of,
)
from tests.patience import PATIENCE
from tests.requirements import require

ROOT = Path(__file__).parents[3]
FASTMCP = ROOT / ".servers" / "differential" / "bin" / "python"
CLASSES = original_names()["classes"]
BY_HAND = "by hand"
"""Words of the text about a name that nothing is known to use for."""
CASES = [(cls, member) for cls, members in CLASSES.items() for member in members]


def parameters() -> list[tuple[str, str]]:
    """Return the keyword arguments of constructors and methods of servers and contexts, which funcmcp.compat has."""
    pairs = []
    for cls in ("FastMCP", "MCPServer", "Context"):
        for member, names in CLASSES[cls].items():
            verdict = SAME if member == "__init__" else member_verdict(cls, member)
            is_made_here = cls == "Context" and member == "__init__"
            if names and verdict is not None and verdict.level != "missing" and not is_made_here:
                pairs += [(cls if member == "__init__" else f"{cls}.{member}", name) for name in names]
    return pairs


def test_each_member_of_the_originals_has_a_verdict() -> None:
    assert [case for case in CASES if member_verdict(*case) is None] == []


@pytest.mark.parametrize("cls", ["FastMCP", "MCPServer", "Context"])
def test_the_report_says_what_to_use_for_members_that_authors_call(cls: str) -> None:
    listed = [member for member in CLASSES[cls] if not member.startswith("_")]
    unknown = {member for member in listed if BY_HAND in (member_verdict(cls, member) or SAME).text}
    of_the_framework = {
        "generate_name",
        "get_app_tool",
        "get_tool_by_hash",
        "provider_error_strategy",
        "required_extensions",
    }
    assert unknown <= of_the_framework | {"model_config", "model_post_init"}


def test_each_option_of_the_originals_has_a_verdict() -> None:
    verdicts = {pair: option_verdict(*pair) for pair in parameters()}
    assert [pair for pair, verdict in verdicts.items() if verdict.level != "same" and not verdict.text] == []


def test_a_member_of_compat_is_never_called_missing() -> None:
    for cls in CLASSES:
        members = [name for name in dir(class_of(cls)) if not name.startswith("_")]
        missing = [name for name in members if (member_verdict(cls, name) or SAME).level == "missing"]
        assert missing == [], cls


def test_a_name_of_compat_is_never_called_missing() -> None:
    for module, names in original_names()["modules"].items():
        for name in names:
            verdict = import_verdict(module, name)
            home = home_of(module, name)
            if name in compat.__all__ and not home.startswith((*sentences.OTHER_MEANINGS, "mcp.types", "mcp_types")):
                assert verdict == SAME, (module, name)


def test_sentences_are_about_names_that_exist() -> None:
    for name in (*sentences.DIFFERENCES, *sentences.OVERRIDES):
        cls, _, member = name.partition(".")
        assert cls in compat.__all__, name
        assert not member or hasattr(class_of(cls), member), name
    for name in sentences.WHAT_TO_USE:
        cls, _, member = name.partition(".")
        if member:
            verdict = member_verdict(cls, member)
            assert member in CLASSES[cls], name
            assert verdict is not None, name
            assert verdict.level == "missing", name
        else:
            assert name not in compat.__all__, name


def test_a_method_that_takes_any_option_is_asked_about_it() -> None:
    for cls in ("FastMCP", "MCPServer", "Context"):
        for name, function in inspect.getmembers(class_of(cls), inspect.isroutine):
            if name.startswith("_") or name not in CLASSES[cls]:
                continue
            kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
            if inspect.Parameter.VAR_KEYWORD in kinds:
                assert name in probed_methods() | ACCEPTS_ANYTHING, f"{cls}.{name}"


@pytest.mark.parametrize(
    ("owner", "option", "level", "text"),
    [
        ("FastMCP", "instructions", "same", ""),
        ("FastMCP", "middleware", "same", ""),
        ("FastMCP", "providers", "same", ""),
        ("FastMCP", "json_response", "differs", "changes nothing"),
        ("FastMCP", "colour", "missing", "Unknown option 'colour' of FastMCP"),
        ("FastMCP", "extensions", "missing", "use extensions= of funcmcp.MCPServer"),
        ("MCPServer", "extensions", "same", ""),
        ("FastMCP.tool", "annotations", "same", ""),
        ("FastMCP.tool", "auth", "same", ""),
        ("FastMCP.tool", "version", "same", ""),
        ("FastMCP.tool", "serializer", "differs", "changes nothing"),
        ("FastMCP.resource", "security", "same", ""),
        ("FastMCP.prompt", "task", "differs", "changes nothing"),
        ("FastMCP.run", "port", "same", ""),
        ("FastMCP.run", "show_banner", "same", ""),
        ("FastMCP.run", "uvicorn_config", "differs", "changes nothing"),
        ("FastMCP.mount", "tool_names", "same", ""),
        ("FastMCP.mount", "as_proxy", "differs", "changes nothing"),
        ("FastMCP.enable", "version", "same", ""),
        ("FastMCP.enable", "colour", "missing", "colour"),
        ("FastMCP.from_openapi", "mcp_component_fn", "same", ""),
        ("FastMCP.call_tool", "run_middleware", "same", ""),
        ("Context.sample", "temperature", "same", ""),
        ("Context.sample", "tools", "missing", "ask for a text"),
        ("create_proxy", "mode", "same", ""),
        ("create_proxy", "providers", "same", ""),
        ("Image", "path", "same", ""),
        ("get_http_headers", "colour", "missing", "no such option"),
    ],
)
def test_options(owner: str, option: str, level: str, text: str) -> None:
    verdict = option_verdict(owner, option)
    assert verdict.level == level
    assert text in verdict.text


@pytest.mark.parametrize(
    ("cls", "member", "level", "text"),
    [
        ("FastMCP", "tool", "same", ""),
        ("FastMCP", "settings", "same", ""),
        ("FastMCP", "get_context", "same", ""),
        ("MCPServer", "call_tool", "same", ""),
        ("MCPServer", "custom_route", "differs", "Host"),
        ("FastMCP", "_tool_manager", "same", ""),
        ("FastMCP", "_mcp_server", "differs", "only name, version"),
        ("MCPServer", "_lowlevel_server", "differs", "only name, version"),
        ("FastMCP", "add_tool_transformation", "same", ""),
        ("FastMCP", "wrap_transform", "missing", "use mcp.add_transform"),
        ("Context", "disable_components", "same", ""),
        ("Context", "sample_step", "missing", "use await ctx.sample"),
        ("ServerSession", "send_log_message", "same", ""),
        ("ServerSession", "send_ping", "missing", "by hand"),
        ("Resource", "uri", "same", ""),
        ("FastMCP.get_tool", "name", "same", ""),
    ],
)
def test_members(cls: str, member: str, level: str, text: str) -> None:
    verdict = member_verdict(cls, member)
    assert verdict is not None
    assert verdict.level == level
    assert text in verdict.text


def test_a_name_that_neither_side_has_is_the_authors_own() -> None:
    assert member_verdict("FastMCP", "cash_register") is None
    assert member_verdict("ToolError", "cash_register") is None


@pytest.mark.parametrize(
    ("module", "name", "target"),
    [
        ("fastmcp.tools", "Tool", "funcmcp.compat"),
        ("fastmcp.contrib.mcp_mixin", "MCPMixin", "funcmcp.compat.fastmcp.contrib.mcp_mixin"),
        ("mcp.server.extension", "Extension", "funcmcp.compat.mcp.server.extension"),
        ("fastmcp.utilities.colours", "Colour", None),
        ("mcp", "ClientSession", None),
    ],
)
def test_an_import_moves_to_the_module_that_has_the_name(module: str, name: str, target: str | None) -> None:
    assert target_of(module, name) == target
    assert (import_verdict(module, name).level == "same") == (target is not None)


def test_names_that_are_added_to_compat_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrap_transform(_: Any, name: str) -> str:
        return name

    member_verdict.cache_clear()
    import_verdict.cache_clear()
    monkeypatch.setattr(compat.FastMCP, "wrap_transform", wrap_transform, raising=False)
    monkeypatch.setattr(compat, "__all__", [*compat.__all__, "Namespace"])
    try:
        assert member_verdict("FastMCP", "wrap_transform") == SAME
        assert import_verdict("fastmcp.server.transforms", "Namespace") == SAME
    finally:
        member_verdict.cache_clear()
        import_verdict.cache_clear()


def test_overridden_methods() -> None:
    for cls, member, level in (
        ("FastMCP", "get_resource", "missing"),
        ("FastMCP", "_on_list_tools", "missing"),
        ("FastMCP", "add_tool", "differs"),
    ):
        verdict = override_verdict(cls, member)
        assert verdict is not None
        assert verdict.level == level
    same = (
        ("FastMCP", "run"),
        ("FastMCP", "open_shop"),
        ("Middleware", "on_call_tool"),
        ("FastMCP", "_list_tools_mcp"),
    )
    for cls, member in same:
        assert override_verdict(cls, member) is None


def test_attributes_that_can_not_be_set() -> None:
    assert can_be_set("FastMCP", "auth").level == "missing"
    assert can_be_set("FastMCP", "colour") == SAME
    assert can_be_set("FastMCP", "_tool_manager") == SAME


def names_of(python: str) -> dict[str, Any]:
    script = ROOT / "scripts" / "original_names.py"
    read = subprocess.run([python, script, "--read"], stdout=subprocess.PIPE, timeout=PATIENCE, check=True)
    names: dict[str, Any] = json.loads(read.stdout)
    return names


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
@pytest.mark.parametrize("python", [sys.executable, str(FASTMCP)], ids=["sdk", "fastmcp"])
def test_the_file_has_the_names_of_the_installed_packages(python: str) -> None:
    """Run scripts/original_names.py with environments for the versions in its file, and the new one, if this fails."""
    require("FastMCP in .servers/differential", Path(python).exists())
    names, listed = names_of(python), original_names()
    for package, versions in names["versions"].items():
        assert set(versions) <= set(listed["versions"][package])
    for module, homes in names["modules"].items():
        assert homes.keys() <= listed["modules"].get(module, {}).keys(), module
    for cls, members in names["classes"].items():
        assert members.keys() <= listed["classes"].get(cls, {}).keys(), cls
