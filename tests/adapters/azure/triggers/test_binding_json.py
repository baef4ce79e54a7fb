"""What the functions host reads of a server's features: the bindings of its functions, key by key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from funcmcp import MCPServer, ProtocolOptions, content
from tests.azure.host import read_binding
from tests.azure.triggers import Triggers

pytestmark = [
    pytest.mark.every_python("Python 3.13 has another azure-functions."),
    pytest.mark.lowest("azure-functions has the classes of functions and bindings."),
]

GOLDEN = Path(__file__).parents[3] / "data" / "azure"
JSON_KEYS = {"toolProperties", "inputSchema", "outputSchema", "metadata", "promptArguments", "icons"}

mcp = MCPServer("snippets")


@mcp.tool("find_snippets", description="Find snippets.", meta={"team": "docs", "ui": {"prefersBorder": True}})
def find(
    query: Annotated[str, Field(description="What to look for")],
    options: dict[str, int],
    kind: Literal["code", "text"] = "code",
    tags: Annotated[list[Literal["new", "old"]] | None, Field(description="Each of them")] = None,
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
    score: float | None = None,
    *,
    exact: bool = False,
) -> list[str]:
    return []


@mcp.tool
def ping() -> None:
    return


ABOUT = "What it is about."


@mcp.resource(
    "docs://readme", title="Read me", description=ABOUT, mime_type="text/markdown", size=11, meta={"version": 2}
)
def readme() -> str:
    return "# Read me\n"


@mcp.resource("snippet://{folder}/{name}.txt")
def snippet(folder: str, name: str) -> str:
    return f"{folder} {name}"


ICON = content.Icon("https://example.com/i.png", mime_type="image/png", sizes=["48x48"], theme="dark")


@mcp.prompt(title="Code review", icons=[ICON], meta={"team": "docs"})
def review(code: Annotated[str, Field(description="The code")], language: str = "Python") -> str:
    """Review some code."""
    return f"Review {code} in {language}"


@pytest.fixture(scope="module")
def triggers() -> Triggers:
    return Triggers(mcp)


FILES = sorted(GOLDEN.glob("*.json"))


def test_every_feature_is_a_function_with_a_golden_file(triggers: Triggers) -> None:
    assert set(triggers.functions) == {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_trigger_has_the_keys_of_the_contract_and_no_others(triggers: Triggers, path: Path) -> None:
    golden = json.loads(path.read_text(encoding="utf-8"))
    (binding,) = triggers.bindings[path.stem]
    told = {key: json.loads(value) for key, value in binding.items() if key in JSON_KEYS}
    assert {key: value for key, value in binding.items() if key not in JSON_KEYS} == golden["plain"]
    assert told == golden["json"]
    read_binding(binding)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["integer", "null"]}, ("integer", False, [])),
        ({"anyOf": [{"type": "null"}, {"type": "boolean"}]}, ("boolean", False, [])),
        ({"$ref": "#/$defs/Node"}, ("object", False, [])),
        ({"type": "array", "items": {"$ref": "#/$defs/Node"}}, ("object", True, [])),
        ({"type": "array"}, ("string", True, [])),
        ({"const": "one"}, ("string", False, ["one"])),
        ({"enum": [1, "a", None]}, ("string", False, ["a"])),
        (True, ("string", False, [])),
    ],
)
def test_a_schema_that_tool_properties_cannot_say_becomes_the_nearest_that_they_can(
    schema: Any, expected: tuple[str, bool, list[str]]
) -> None:
    server = MCPServer("explicit")
    defs = {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}
    whole = {"type": "object", "properties": {"x": schema}, "required": ["x"], "$defs": defs}

    @server.tool(input_schema=whole)
    def take(arguments: dict[str, Any]) -> None:
        return

    read = read_binding(Triggers(server).trigger("tool_take"))
    assert read["inputSchema"] == whole
    kind, is_array, choices = expected
    assert read["toolProperties"] == [
        {
            "propertyName": "x",
            "propertyType": kind,
            "description": "",
            "isRequired": True,
            "isArray": is_array,
            "enumValues": choices,
        }
    ]


def test_names_that_no_function_can_have_and_names_that_meet_get_names_of_their_own() -> None:
    server = MCPServer("names")
    for name in ("a.b", "a_b", "a-b", "x" * 128, "x" * 127 + "y"):
        server.tool(name)(lambda: None)
    server.prompt("a_b")(lambda: "hello")
    names = list(Triggers(server).functions)
    assert names[:3] == ["tool_a_b", "tool_a_b_2", "tool_a_b_3"]
    assert names[-1] == "prompt_a_b"
    assert len({name.lower() for name in names}) == len(names)
    assert all(len(name) <= 127 and name.replace("_", "").isalnum() for name in names)


def test_features_of_a_kind_that_is_switched_off_are_no_functions() -> None:
    server = MCPServer("partly", protocol=ProtocolOptions(offer_prompts=False))
    server.tool("one")(lambda: None)
    server.prompt("two")(lambda: "hello")
    assert list(Triggers(server).functions) == ["tool_one"]
