"""Azure's MCP triggers become tools, resources and prompts, and the function app registers them again."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.cli.forking import funcmcp
from tests.patience import PATIENCE
from tests.requirements import require

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("libcst")

from funcmcp_cli.migrate.azure_rewriting import _TIME_LIMIT
from funcmcp_cli.migrate.plan import plan_migration, write_changes

pytestmark = pytest.mark.lowest("libcst parses and writes the code.")

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
                "description": "The name.",
            },
        },
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


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
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
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    expected = ["ping httpTrigger", "tool_addNumbers mcpToolTrigger", "tool_hello mcpToolTrigger"]
    assert sorted(shown.stdout.splitlines()) == expected


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ('@app.mcp_tool()\n@app.blob_output(arg_name="o", path="x")\ndef f(o: str): ...', "it has other bindings"),
        ('@app.mcp_tool()\n@app.blob_output(arg_name="o", path="x")\ndef f(o: str): ...',
         'write trigger_app(mcp, app, bindings={"f": [Output("o", "blob", ...)]})'),
        (('@app.generic_trigger(arg_name="c", type="mcpToolTrigger", toolName="save")\n'
         '@app.generic_input_binding(arg_name="i", type="table")\ndef f(c): ...'),
         'bindings={"save": [Input("i", "table", ...)]}'),
        ("@app.mcp_tool()\n@app.durable_client_input(client_name='c')\ndef f(a: int): ...",
         'it uses Durable functions; write the orchestration as a tool with @mcp.tool(task="optional")'),
        (('@app.generic_trigger(arg_name="c", type="mcpToolTrigger", toolName="save")\n'
         '@app.generic_input_binding(arg_name="i", type="durableClient")\ndef f(c): ...'),
         "see docs/guides/tasks.md"),
        ("@app.mcp_tool()\n@app.route('x')\ndef f(a: int): ...",
         "it has the binding route, which funcmcp does not have"),
        ("@app.mcp_tool()\ndef f(a): ...", "a parameter has no type"),
        ("@app.mcp_tool()\ndef f(a: int) -> dict[str, Any]: return json.dumps(load(a))",
         "it returns a text, but its annotation is dict[str, Any]; correct the annotation"),
        ("@app.mcp_tool()\ndef f(a: int) -> Optional[int]: return 'x'", "its annotation is Optional[int]"),
        ("bp = func.Blueprint()\n@bp.mcp_tool()\ndef f(a: int): ...", "its app is a Blueprint; write it with"),
        ("@app.mcp_tool()\n@app.mcp_tool_property(arg_name='a', is_required=False)\ndef f(a: int): ...",
         "the argument a is not required, but has no default"),
        (("@app.mcp_tool()\n@app.mcp_tool_property(arg_name='a', property_type=func.McpPropertyType.INTEGER)\n"
         "def f(a: str): ..."), "the property_type of a is integer, its annotation str"),
        ("@app.mcp_tool()\n@app.mcp_tool_property(arg_name='a', as_array=True)\ndef f(a: str): ...",
         "the property_type of a is array, its annotation str"),
        ("@app.mcp_tool()\ndef f(c: func.MCPToolContext): ...", "it takes Azure's context"),
        ("@app.mcp_tool(use_result_schema=True)\ndef f(a: int): ...", "options that funcmcp does not have"),
        ("@app.mcp_tool()\n@app.mcp_tool_property(arg_name='x', description='y')\ndef f(a: int): ...",
         "a property belongs to no parameter"),
        ("@bp.mcp_tool()\ndef f(a: int): ...", "its app is not a FunctionApp of this file"),
        ("@app.mcp_resource_trigger(arg_name='c', uri='a://{user-id}', resource_name='a')\ndef f(c: str): ...",
         "'user-id' cannot be the name of a parameter"),
        ("@app.mcp_resource_trigger(arg_name='c', uri='a://{c}', resource_name='a')\ndef f(c: str): ...",
         "two of its parameters would have one name"),
        ("@app.mcp_resource_trigger(arg_name='c', uri=URI, resource_name='a')\ndef f(c: str): ...",
         "a value of its trigger is not written out"),
        ("@app.mcp_prompt_trigger(arg_name='c', prompt_name='p')\ndef f(c): return c.transport['name']",
         "it uses c other than by json.loads(c) or c.arguments"),
        ("@app.mcp_prompt_trigger(arg_name='c', prompt_name='p')\ndef f(c): return json.dumps({'messages': []})",
         "it returns messages as JSON"),
        (("M = json.dumps({'messages': []})\n@app.mcp_prompt_trigger(arg_name='c', prompt_name='p')\n"
         "def f(c): return M"), "it returns messages as JSON"),
        (("def m(): return json.dumps({'messages': []})\n@app.mcp_prompt_trigger(arg_name='c', prompt_name='p')\n"
         "def f(c): return m()"), "it returns messages as JSON"),
        (("@app.mcp_prompt_trigger(arg_name='c', prompt_name='p')\ndef f(c):\n    t = json.dumps({'messages': []})\n"
         "    return t"), "it returns messages as JSON"),
        ("@app.mcp_prompt_trigger(arg_name='c', prompt_name='p')\ndef f(c): return '{\"messages\": []}'",
         "it returns messages as JSON"),
        ("@app.mcp_prompt_trigger(arg_name='c', prompt_name='p')\ndef f(c): return Result().model_dump_json()",
         "what it returns may be messages as JSON"),
        ("@app.mcp_prompt_trigger(arg_name='c', prompt_name='p')\ndef f(c): ...", "it may return None"),
        ("@app.mcp_prompt_trigger(arg_name='c', prompt_name='p')\ndef f(c): return {'messages': []}",
         "it returns a value that is not a text"),
        ("@app.mcp_resource_trigger(arg_name='c', uri='a://b', resource_name='a')\ndef f(c):\n    if f: return 'x'",
         "it may return None"),
        ("@app.mcp_resource_trigger(arg_name='c', uri='a://b', resource_name='a')\ndef f(c): return {'a': 1}",
         "it returns a value that is neither a text nor bytes"),
        (("@app.mcp_resource_trigger(arg_name='c', uri='a://b', resource_name='a')\n"
         "def f(c): return json.dumps({'content': '{}'})"), "it may return contents as JSON"),
        ("@app.mcp_prompt_trigger(arg_name='c', prompt_name='p', prompt_arguments='[{}]')\ndef f(c): ...",
         "its properties or arguments are not valid"),
        ("@app.mcp_tool_trigger(arg_name='c', tool_name='t')\ndef f(c: str): return json.loads(c)['sessionid']",
         "it reads sessionid of Azure's context"),
        ("@app.mcp_tool_trigger(arg_name='c', tool_name='t', tool_properties=make())\ndef f(c: str): ...",
         "a value of its trigger is not written out"),
        ("@app.mcp_tool_trigger(arg_name='c', tool_name='t', tool_properties='{')\ndef f(c: str): ...",
         "its properties or arguments are not valid"),
        ("@app.mcp_tool_trigger(arg_name='c', tool_name='t')\ndef f(c: str): return c",
         "it uses c other than by json.loads(c)"),
        ("from tools import f\n\napp.generic_trigger(arg_name='c', type='mcpToolTrigger', toolName='t')(f)",
         "its trigger is called, and is not a decorator"),
        ("for f in load():\n    app.mcp_tool()(f)", "in a loop or in a function, so this line may make several tools"),
        ("def register(f):\n    app.mcp_tool()(f)", "write a function with a decorator for each of them"),
        ("[app.mcp_tool()(f) for f in load()]", "this line may make several tools"),
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


def test_a_function_of_an_imported_app_is_reported_and_one_of_durable_functions_moves(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("from main import app\n\n\n@app.mcp_tool()\ndef f(a: int): ...\n")
    code = "import azure.durable_functions as df\n\napp = df.DFApp()\n\n\n@app.mcp_tool()\ndef g(a: int): ...\n"
    (tmp_path / "main.py").write_text(code)
    plan = plan_migration(tmp_path)
    assert [change.name for change in plan.changes] == ["main.py"]
    reason = "its app is not a FunctionApp of this file; move it to the file that creates the app"
    assert [note.text for note in plan.notes if note.level == "missing"] == [f"f stays a function of Azure's: {reason}"]


@pytest.mark.parametrize(
    ("apps", "reason"),
    [
        ("app = McpApp()", "its app is made by McpApp(...), which migrate does not know; make it a FunctionApp, or"),
        ("app = apps.make(1)", "its app is made by make(...), which migrate does not know;"),
        ("app = APPS[0]", "its app is made by another expression, which migrate does not know;"),
        ("app = func.FunctionApp()\nother = func.FunctionApp()", "this file creates several function apps;"),
    ],
)
def test_an_app_of_the_file_that_is_not_known_is_named(tmp_path: Path, apps: str, reason: str) -> None:
    (tmp_path / "function_app.py").write_text(f"{apps}\n\n\n@app.mcp_tool()\ndef f(a: int): ...\n")
    plan = plan_migration(tmp_path)
    assert plan.changes == []
    (note,) = plan.notes
    assert note.level == "missing"
    assert note.text.startswith(f"f stays a function of Azure's: {reason}")


def test_an_orchestration_points_to_tasks(tmp_path: Path) -> None:
    code = "app = df.DFApp()\n\n\n@app.orchestration_trigger(context_name='context')\ndef mine(context): ...\n"
    (tmp_path / "function_app.py").write_text(HEAD + code)
    (note,) = plan_migration(tmp_path).notes
    assert note.level == "missing"
    assert note.text.startswith("mine: an orchestration of Durable functions; it can be an async tool with")


DIFFERENT = [
    ("@app.mcp_resource_trigger(arg_name='c', uri='a://b', resource_name='a')\ndef f(c): return open(c.uri).read()",
     ["its title is made from its name", "its media type is made from what it returns",
      "JSON with `content` that it returns is a text; Azure sends the contents in it"]),
    (("@app.mcp_resource_trigger(arg_name='c', uri='a://b', resource_name='a', title='A', mime_type='a/b')\n"
      "def f(c): return 'x'"), []),
    (("@app.mcp_resource_trigger(arg_name='c', uri='a://b', resource_name='a')\n"
     "def f(c): return json.dumps({'a': 1})"),
     ["its title is made from its name", "its media type is made from what it returns"]),
    ("@app.mcp_tool()\ndef f(a: int) -> dict: return {'a': a}",
     ["a result that is not a text is structured content, with its JSON as a text",
      "its results are validated against the return annotation"]),
    ("@app.mcp_prompt_trigger(arg_name='c', prompt_name='p')\ndef f(c): return 'x'",
     ["the result has the prompt's description", "its title is made from its name"]),
    ("@app.mcp_tool()\ndef f(a: int) -> str: return load(a)", []),
    ("@app.mcp_tool()\ndef f(a: int): return b'abc'",
     ["bytes are an embedded resource; Azure sends the name of a type of .NET"]),
    (("@app.mcp_tool()\n@app.mcp_tool_property(arg_name='a', description='A.', "
     "property_type=func.McpPropertyType.INTEGER)\n"
     "@app.mcp_tool_property(arg_name='b', property_type=func.McpPropertyType.DATETIME, is_required=False)\n"
     "def f(a: int = 1, b: str = '') -> str: return 'x'"),
     ["the schema has the defaults of its arguments", "the argument a is optional, because it has a default"]),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), DIFFERENT)
def test_what_differs_on_the_wire_is_reported(tmp_path: Path, code: str, expected: list[str]) -> None:
    (tmp_path / "function_app.py").write_text(f"{HEAD}{code}\n")
    plan = plan_migration(tmp_path)
    assert len(plan.changes) == 1
    general = {"f: arguments are validated before the function runs", _TIME_LIMIT}
    differing = [note.text for note in plan.notes if note.level == "differs" and note.text not in general]
    assert differing == sorted(f"f: {text}" for text in expected)


SHOP = '''import json

import azure.functions as func

app = func.FunctionApp()
TASTE = {"name": "taste", "description": "The taste.", "required": False}
ARGUMENTS = json.dumps([TASTE, {"name": "dish", "required": True}])


@app.mcp_tool(metadata='{"shelf": {"row": 1, "cold": true}}')
def find_dish(name: str) -> str:
    """Find a dish."""
    return f"{name} is there."


@app.mcp_resource_trigger(
    arg_name="context",
    uri="menu://{day}",
    resource_name="menu",
    title="Menu",
    description="The menu of a day.",
    mime_type="text/markdown",
    metadata=json.dumps({"weekly": True}),
)
def menu(context: str) -> str:
    # The URI has the day.
    content = json.loads(context)
    return "# Menu of " + content["uri"].rpartition("/")[2]


@app.mcp_resource_trigger(arg_name="context", uri="menu://logo", resource_name="logo", size=3)
def logo(context) -> bytes:
    del context
    return b"abc"


@app.generic_trigger(
    arg_name="context", type="mcpResourceTrigger", uri="file://readme.md", resourceName="readme", mimeType="text/plain"
)
def readme(context) -> None:
    return "Read me."


@app.mcp_prompt_trigger(
    arg_name="context",
    prompt_name="suggest",
    description="Suggest a dish.",
    prompt_arguments=[func.PromptArgument("style"), func.PromptArgument("taste", "The taste.", required=True)],
    icons='[{"src": "https://example.com/i.png", "sizes": ["48x48"]}]',
)
def suggest(context: func.PromptInvocationContext) -> str:
    """Return the message."""
    return f"Suggest a {context.arguments['taste']} dish, {context.arguments.get('style', 'plain')}."


@app.generic_trigger(arg_name="context", type="mcpPromptTrigger", promptName="cook", promptArguments=ARGUMENTS)
def cook(context) -> str:
    data = json.loads(context)
    return f"Cook {data['arguments']['dish']}."
'''
SHOP_AFTER = '''import json

import azure.functions as func
import funcmcp.azure
from funcmcp import Context, MCPServer
from typing import Annotated

app = func.FunctionApp()
mcp = MCPServer("Tools")
TASTE = {"name": "taste", "description": "The taste.", "required": False}
ARGUMENTS = json.dumps([TASTE, {"name": "dish", "required": True}])


@mcp.tool(
    meta={
        "shelf": {
            "row": 1,
            "cold": True,
        },
    },
)
def find_dish(name: str) -> str:
    """Find a dish."""
    return f"{name} is there."


@mcp.resource(
    "menu://{day}",
    name="menu",
    title="Menu",
    description="The menu of a day.",
    mime_type="text/markdown",
    meta={
        "weekly": True,
    },
)
def menu(day: str, context: Context) -> str:
    # The URI has the day.
    content = {"uri": context.uri}
    return "# Menu of " + content["uri"].rpartition("/")[2]


@mcp.resource("menu://logo", name="logo", size=3)
def logo(context: Context) -> bytes:
    del context
    return b"abc"


@mcp.resource("file://readme.md", name="readme", mime_type="text/plain")
def readme():
    return "Read me."


@mcp.prompt(
    "suggest",
    description="Suggest a dish.",
    icons=[
        {
            "src": "https://example.com/i.png",
            "sizes": ["48x48"],
        },
    ],
)
def suggest(taste: Annotated[str, "The taste."], context: Context, style: str | None = None) -> str:
    """Return the message."""
    return f"Suggest a {context.arguments['taste']} dish, {context.arguments.get('style', 'plain')}."


@mcp.prompt("cook")
def cook(dish: str, context: Context, taste: Annotated[str | None, "The taste."] = None) -> str:
    data = {"name": context.name, "arguments": context.arguments}
    return f"Cook {data['arguments']['dish']}."


funcmcp.azure.trigger_app(mcp, app)
'''
CALLS = [
    {"tool": "find_dish", "arguments": {"name": "Soup"}},
    {"resource": "menu://monday"},
    {"resource": "menu://logo"},
    {"resource": "file://readme.md"},
    {"prompt": "suggest", "arguments": {"taste": "mild"}},
    {"prompt": "suggest", "arguments": {"taste": "hot", "style": "fancy"}},
]


def test_resources_and_prompts_are_rewritten(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "function_app.py").write_text(SHOP)
    write_changes(plan_migration(folder).changes)
    assert (folder / "function_app.py").read_text() == SHOP_AFTER
    assert plan_migration(folder).changes == []


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
def test_the_rewritten_app_answers_as_before(tmp_path: Path) -> None:
    require("azure.functions", find_spec("azure"))
    (tmp_path / "calls.json").write_text(json.dumps(CALLS))
    for name in ("old", "shop"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "host.json").write_text('{"version": "2.0"}')
        (tmp_path / name / "function_app.py").write_text(SHOP)
    write_changes(plan_migration(tmp_path / "shop").changes)
    compared = funcmcp("diff", "old", "shop/function_app.py", "--calls", "calls.json", "--breaking", folder=tmp_path)
    assert (compared.stdout, compared.returncode) == ("no differences\n", 0), compared.stderr


@pytest.mark.parametrize("name", ['a"); import os; os.abort() #', "a\\", "a\nb\x1b[2J", "Größe", "\udcff"])
def test_the_name_of_a_folder_is_a_text_in_the_code(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "function_app.py").write_text(HEAD + CLASS + BEFORE)
    write_changes(plan_migration(tmp_path).changes)
    (server,) = [
        node.value.args[0]
        for node in ast.parse((folder / "function_app.py").read_text()).body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) == "MCPServer"
    ]
    assert ast.literal_eval(server) == name
