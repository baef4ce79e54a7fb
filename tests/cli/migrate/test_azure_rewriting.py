"""Azure's MCP triggers become tools, and the function app registers them again."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("libcst")

from funcmcp.cli.migrate.plan import plan_migration, write_changes

HEAD = "import json\n\nimport azure.functions as func\n\napp = func.FunctionApp()\n\n\n"
BEFORE = '''
PROPERTIES = [
    ToolProperty("name", "string", "The name."),
]
TEXT = json.dumps([prop.to_dict() for prop in PROPERTIES])


# Says hello.
@app.generic_trigger(
    arg_name="context", type="mcpToolTrigger", toolName="hello", description="Hello.", toolProperties=TEXT
)
def hello_mcp(context) -> str:
    content = json.loads(context)
    return content["arguments"]["name"]  # the name


@app.mcp_tool()
@app.mcp_tool_property(arg_name="a", description="The first number.")
def addNumbers(a: int, b: int = 1) -> int:
    """Add numbers."""
    return a + b


@app.route(route="ping")
def ping(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("pong")
'''
CLASS = """class ToolProperty:
    def __init__(self, name, kind, description):
        self.name = name

    def to_dict(self):
        return {}

"""
AFTER = '''
# Says hello.
@mcp.tool(
    "hello",
    description="Hello.",
    input_schema={
        "type": "object",
        "properties": {
            "name": {
                "type": "string",
                "description": "The name."
            }
        }
    },
)
def hello_mcp(arguments: dict[str, Any]) -> str:
    content = {"name": "hello", "arguments": arguments}
    return content["arguments"]["name"]  # the name


@mcp.tool(name="addNumbers")
def addNumbers(a: Annotated[int, "The first number."], b: int = 1) -> int:
    """Add numbers."""
    return a + b


@app.route(route="ping")
def ping(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("pong")


funcmcp.azure.trigger_app(mcp, app)
'''


def test_tools_are_rewritten_and_registered_again(tmp_path: Path) -> None:
    file = tmp_path / "function_app.py"
    file.write_text(HEAD + CLASS + BEFORE)
    write_changes(plan_migration(tmp_path).changes)
    text = file.read_text()
    assert text.startswith(
        "import json\n\nimport azure.functions as func\nimport funcmcp.azure\nfrom funcmcp import MCPServer\n"
        'from typing import Annotated, Any\n\napp = func.FunctionApp()\nmcp = MCPServer("Tools")\n'
    )
    assert text.endswith(AFTER)
    assert plan_migration(tmp_path).changes == []
    code = (
        "import function_app as f\nfor g in f.app.get_functions(): print(g.get_function_name(), g.get_trigger().type)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    expected = ["ping httpTrigger", "tool_addNumbers mcpToolTrigger", "tool_hello mcpToolTrigger"]
    assert sorted(shown.stdout.splitlines()) == expected


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ('@app.mcp_tool()\n@app.blob_output(arg_name="o", path="x")\ndef f(o: str): ...', "it has other bindings"),
        ("@app.mcp_tool()\ndef f(a): ...", "a parameter has no type"),
        ("@app.mcp_tool()\ndef f(c: func.MCPToolContext): ...", "it takes Azure's context"),
        ("@app.mcp_tool(metadata='{}')\ndef f(a: int): ...", "it has other bindings"),
        ("@app.mcp_tool()\n@app.mcp_tool_property(arg_name='x', description='y')\ndef f(a: int): ...",
         "a property belongs to no parameter"),
        ("@bp.mcp_tool()\ndef f(a: int): ...", "its app is not a FunctionApp of this file"),
        ("@app.mcp_resource_trigger(arg_name='c', uri='a://b')\ndef f(c: str): ...", "it is not a tool"),
        ("@app.generic_trigger(arg_name='c', type='mcpPromptTrigger')\ndef f(c: str): ...", "it is not a tool"),
        ("@app.mcp_tool_trigger(arg_name='c', tool_name='t', tool_properties=make())\ndef f(c: str): ...",
         "a value of its trigger is not written out"),
        ("@app.mcp_tool_trigger(arg_name='c', tool_name='t', tool_properties='{')\ndef f(c: str): ...",
         "its properties are not valid"),
        ("@app.mcp_tool_trigger(arg_name='c', tool_name='t')\ndef f(c: str): return c",
         "it uses c other than by json.loads(c)"),
    ],
)  # fmt: skip
def test_a_function_that_cannot_be_rewritten_stays(tmp_path: Path, code: str, reason: str) -> None:
    (tmp_path / "function_app.py").write_text(HEAD + code + "\n")
    plan = plan_migration(tmp_path)
    assert plan.changes == []
    (note,) = plan.notes
    assert note.level == "missing"
    assert note.text.startswith("f stays a function of Azure's: ")
    assert reason in note.text
