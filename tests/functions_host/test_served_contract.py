"""A function app whose bindings and return values are at the edge of what Azure's host accepts."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from typing import TYPE_CHECKING

import pytest

from funcmcp.client import InvalidResponseError
from funcmcp.testing import Client
from funcmcp_host.features import _RawTemplate
from funcmcp_host.served import PATH, FunctionsHost, HostSettings
from tests.functions_host.apps import write_app

if TYPE_CHECKING:
    from pathlib import Path

    from funcmcp._transports.http.messages import HttpRequest, HttpResponse

pytestmark = pytest.mark.every_python("Python 3.13 has another azure-functions.")

APP = """
import json

import azure.functions as func

app = func.FunctionApp()
NAME = json.dumps([{"propertyName": "name", "propertyType": "string", "description": "", "isRequired": True}])


def tool(name, path, properties=NAME):
    def save(context, file: func.Out[str]) -> str:
        file.set(json.loads(context)["arguments"]["name"])
        return "saved"

    save.__name__ = name
    save = app.blob_output(arg_name="file", connection="Files", path=path)(save)
    app.mcp_tool_trigger(arg_name="context", tool_name=name, description="", tool_properties=properties)(save)


tool("right", "notes/{mcptoolargs.name}-{datetime:yyyy}.txt")
tool("constant", "notes/{name}.txt")
tool("wrong", "notes/{title}.txt")
tool("text_flag", "notes/a", json.dumps([{"propertyName": "name", "isRequired": "true"}]))
tool("snake", "notes/a", json.dumps([{"property_name": "name"}, {"propertyName": "name", "is_required": True}]))


@app.mcp_resource_trigger(arg_name="context", uri="doc://one", resource_name="doc", mime_type="application/json")
def doc(context) -> str:
    return json.dumps({"title": "One", "content": {"text": "inner"}})


@app.mcp_prompt_trigger(arg_name="context", prompt_name="chat")
def chat(context) -> str:
    return json.dumps({"messages": [{"role": "system", "content": "Be brief."}]})


@app.mcp_prompt_trigger(arg_name="context", prompt_name="bare")
def bare(context) -> str:
    return json.dumps({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}]})


@app.mcp_prompt_trigger(arg_name="context", prompt_name="rich", useResultSchema=True)
def rich(context) -> str:
    messages = [{"role": "assistant", "content": {"type": "text", "text": "hi"}}]
    return json.dumps({"Type": "prompt_messages", "Content": json.dumps(messages)})
"""


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_the_app_is_served_as_on_azure_and_the_log_says_what_differs(
    revision: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "funcmcp.host")
    storage = tmp_path / "storage"
    host = FunctionsHost(write_app(tmp_path / "app", APP), dict(os.environ), HostSettings(storage=storage))

    async def exchange(http: HttpRequest) -> HttpResponse:
        http.path = PATH
        return await host.exchange(http)

    await host.start()
    try:
        async with Client(exchange, revision=revision) as client:
            tools = {tool["name"]: tool["inputSchema"] for tool in await client.list_tools()}
            for name in ("right", "constant"):
                result = await client.call_tool(name, {"name": "a"})
                assert result.content[0]["text"] == "saved"
            wrong = await client.call_tool("wrong", {"name": "a"}, raise_on_error=False)
            contents = (await client.read_resource("doc://one"))["contents"]
            prompts = {name: (await client.get_prompt(name))["messages"] for name in ("chat", "bare", "rich")}
            await client.get_prompt("bare")
    finally:
        await host.aclose()
    assert list(tools) == ["right", "constant", "wrong", "snake"]
    properties = {"name": {"type": "string", "description": ""}}
    assert tools["snake"] == {"type": "object", "properties": properties, "required": []}
    files = {file.name for file in (storage / "Files" / "notes").iterdir()}
    assert "constant.txt" in files
    assert any(name.startswith("a-20") for name in files)
    assert wrong.is_error
    assert "'notes/{title}.txt' has {title}, which the trigger does not have." in wrong.content[0]["text"]
    assert contents == [
        {"uri": "doc://one", "mimeType": "application/json", "text": '{"title": "One", "content": {"text": "inner"}}'}
    ]
    chat = {"messages": [{"role": "system", "content": "Be brief."}]}
    assert prompts["chat"] == [{"role": "user", "content": {"type": "text", "text": json.dumps(chat)}}]
    assert prompts["bare"] == [{"role": "user", "content": {"type": "text", "text": "hi"}}]
    assert prompts["rich"] == [{"role": "assistant", "content": {"type": "text", "text": "hi"}}]
    assert {left.function: left.reason for left in host.left_out if not left.is_listed} == {
        "text_flag": 'isRequired of item 1 of toolProperties is "true". Write true or false.'
    }
    found = [breach.text for breach in host.breaches if breach.rule.group == "triggers"]
    assert found[-1] == (
        "in its other bindings, 'notes/{name}.txt' is the same in each call: {name} is the name of what is called. "
        "For the argument, write {mcptoolargs.name}."
    )
    assert {
        "Azure ignores property_name in item 1 of toolProperties. Write propertyName.",
        "Azure ignores is_required in item 2 of toolProperties. Write isRequired.",
        "Azure leaves out item 1 of toolProperties. Write its propertyName.",
    } <= set(found)
    logged = [record.getMessage() for record in caplog.records if "The function" in record.getMessage()]
    assert [text.partition(": ")[2] for text in logged] == [
        (
            "It returns a GetPromptResult as JSON. On Azure: its messages up to extension 1.5, the JSON as one message "
            "since 1.6. Here: its messages."
        ),
    ]


TWINS = """
import azure.functions as func

app = func.FunctionApp()


def add(name, type_, **settings):
    def run(context) -> str:
        return "done"

    run.__name__ = name
    app.generic_trigger(arg_name="context", type=type_, **settings)(run)


for number, name in enumerate(["save", "Save", "saved"]):
    add(f"tool{number}", "mcpToolTrigger", toolName=name, description="", toolProperties="[]")
    add(f"prompt{number}", "mcpPromptTrigger", promptName=name)
    add(f"resource{number}", "mcpResourceTrigger", uri=f"doc://{name}", resourceName=name)
for number, uri in enumerate(["doc://{id}/a", "DOC://{name}/a", "doc://{id}/b"]):
    add(f"template{number}", "mcpResourceTrigger", uri=uri, resourceName=f"t{number}")
"""


async def test_functions_that_azure_takes_for_the_same_one_are_left_out(tmp_path: Path) -> None:
    host = FunctionsHost(write_app(tmp_path / "app", TWINS), dict(os.environ), HostSettings())
    await host.start()
    await host.aclose()
    end = "Rename one of them."
    assert {left.function: left.reason for left in host.left_out} == {
        "tool1": f"Azure does not distinguish the tool 'Save' from 'save' of tool0. {end}",
        "prompt1": f"Azure does not distinguish the prompt 'Save' from 'save' of prompt0. {end}",
        "resource1": (f"Azure does not distinguish the resource 'doc://Save' from 'doc://save' of resource0. {end}"),
        "template1": (
            f"Azure does not distinguish the template 'DOC://{{name}}/a' from 'doc://{{id}}/a' of template0. {end}"
        ),
    }


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("a://{x}-{y}", "a://1-2-3", {"x": "1-2", "y": "3"}),
        ("a://{x}items{y-z}", "a://items%20itemsitems2", {"x": "items%20items", "y-z": "2"}),
        ("a://n/{x}.txt", "a://n/b.txt.txt", {"x": "b.txt"}),
    ],
)
def test_a_variable_of_a_template_takes_as_many_characters_as_it_can(
    template: str, uri: str, values: dict[str, str]
) -> None:
    assert _RawTemplate(template).values(uri) == values


OUTPUTS = """
import json

import azure.functions as func

app = func.FunctionApp()
SCHEMA = '{"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}'


def tool(name, result, schema=SCHEMA, **options):
    def call(context) -> str:
        return json.dumps(result)

    call.__name__ = name
    trigger = {"tool_name": name, "description": "", "tool_properties": "[]", "output_schema": schema}
    app.mcp_tool_trigger(arg_name="context", **trigger, **options)(call)


def envelope(structured):
    content = json.dumps({"type": "text", "text": "t"})
    return {"type": "text", "content": content, "structuredContent": json.dumps(structured)}


tool("plain", {"b": 1})
tool("misfit", envelope({"b": "x"}), use_result_schema=True)
tool("fits", envelope({"b": 1}), use_result_schema=True)
tool("failed", {"type": "call_tool_result", "content": '{"isError": true, "content": []}'}, use_result_schema=True)
tool("unchecked", envelope({"b": "x"}), '{"type": "object", "pattern": 1}', use_result_schema=True)
"""


@pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")
async def test_results_that_do_not_fit_their_output_schema_are_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    host = FunctionsHost(write_app(tmp_path, OUTPUTS), dict(os.environ), HostSettings(engine="library"))
    await host.start()

    async def exchange(http: HttpRequest) -> HttpResponse:
        http.path = PATH
        return await host.exchange(http)

    try:
        async with Client(exchange) as client:
            names = [tool["name"] for tool in await client.list_tools()]
            for name in (*names, *names):
                with contextlib.suppress(InvalidResponseError):  # as official clients, this one refuses such results
                    await client.call_tool(name, {}, raise_on_error=False)
    finally:
        await host.aclose()
    assert names == ["plain", "misfit", "fits", "failed", "unchecked"]
    logged = [record.getMessage() for record in caplog.records if "output schema" in record.getMessage()]
    plain, misfit = (text.partition(". Clients")[0] for text in logged)
    assert plain == "The function plain: Its tool has an output schema, but its result has no structured content"
    assert misfit.startswith("The function misfit: Its tool has an output schema, but its result does not fit it (b ")


async def test_what_an_edit_breaks_is_logged_when_the_app_is_loaded_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_app(tmp_path, OUTPUTS)
    host = FunctionsHost(folder, dict(os.environ), HostSettings(engine="library"))
    await host.start()
    try:
        assert "webhookAuthorizationLevel" not in caplog.text
        system = {"webhookAuthorizationLevel": "Anonymous"}
        (folder / "host.json").write_text(json.dumps({"version": "2.0", "extensions": {"mcp": {"system": system}}}))
        await host.worker.replace()
    finally:
        await host.aclose()
    logged = [record.getMessage() for record in caplog.records if record.name == "funcmcp.host"]
    assert [text.partition(",")[0] for text in logged] == ["webhookAuthorizationLevel: is Anonymous"]
