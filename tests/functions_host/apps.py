"""Function apps as people write them, for tests to serve."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.nodejs import package

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KINDS = '''
import asyncio
import json
import logging
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass
from typing import List

import azure.functions as func

app = func.FunctionApp()
BARRIER = threading.Barrier(5)
TEXT = {"type": "text", "text": "hello"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def envelope(kind, content, **more):
    return json.dumps({"type": kind, "content": json.dumps(content), **more})


PROPERTIES = json.dumps(
    [
        {"propertyName": "name", "propertyType": "string", "description": "Who", "isRequired": True},
        {"propertyName": "tags", "propertyType": "string", "isArray": True, "enumValues": ["a", "b"]},
        {"propertyName": "ratio", "propertyType": "float"},
    ]
)


@app.mcp_tool_trigger(
    arg_name="context",
    tool_name="echo",
    description="Echo",
    tool_properties=PROPERTIES,
    metadata='{"author": {"id": 1}}',
)
def echo(context: str) -> str:
    return context


@app.mcp_tool_trigger(arg_name="context", tool_name="aecho", description="Echo", tool_properties="[]")
async def aecho(context) -> str:
    return context


@app.mcp_tool()
def add(a: int, b: int = 2) -> str:
    """Add two numbers."""
    return str(a + b)


@app.mcp_tool()
def nothing() -> None:
    """Return nothing."""


@app.mcp_tool_trigger(arg_name="context", tool_name="nothing_either", description="Nothing", tool_properties="[]")
def nothing_either(context) -> None:
    pass


@app.mcp_tool_trigger(arg_name="context", tool_name="fail", description="Fail", tool_properties="[]")
def fail(context) -> str:
    raise ValueError("the secret of the house")


@app.mcp_tool_trigger(arg_name="context", tool_name="where", description="Where", tool_properties="[]")
def where(context) -> str:
    print("printed by where")
    logging.warning("logged by where")
    return json.dumps([os.getcwd(), os.getpid(), os.environ.get("SETTING"), sys.version_info[:2]])


@app.mcp_tool_trigger(arg_name="context", tool_name="slow", description="Wait", tool_properties="[]")
async def slow(context) -> str:
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        logging.warning("slow was cancelled")
        raise


@app.mcp_tool_trigger(arg_name="context", tool_name="block", description="Block", tool_properties="[]")
def block(context) -> str:
    BARRIER.wait(60)
    return threading.current_thread().name


@app.mcp_tool_trigger(arg_name="context", tool_name="die", description="Die", tool_properties="[]")
def die(context) -> str:
    os._exit(3)


@app.mcp_tool_trigger(arg_name="context", tool_name="large", description="Large", tool_properties="[]")
def large(context) -> str:
    return "x" * json.loads(context)["arguments"]["size"]


@app.mcp_tool_trigger(
    arg_name="context", tool_name="rich", description="Rich", tool_properties="[]", use_result_schema=True
)
def rich(context) -> str:
    kind = json.loads(context)["arguments"]["kind"]
    return {
        "text": envelope("text", TEXT),
        "many": envelope("multi_content_result", [TEXT, IMAGE]),
        "older": envelope("multiContent", [TEXT, IMAGE]),
        "structured": envelope("image", IMAGE, structuredContent='{"a": 1}'),
        "list": envelope("text", TEXT, structuredContent="[1, 2]"),
        "whole": envelope("call_tool_result", {"content": [TEXT], "isError": True, "_meta": {"k": 1}}),
        "flat": envelope("resource", {"type": "resource", "uri": "file://a", "text": "t"}),
        "bad": "no envelope",
    }[kind]


@app.mcp_resource_trigger(
    arg_name="context",
    uri="note://one",
    resource_name="one",
    title="One",
    description="First",
    mime_type="text/markdown",
    size=5,
    metadata='{"ui": {"prefersBorder": true}}',
)
def one(context: str) -> str:
    return "# One"


@app.mcp_resource_trigger(arg_name="context", uri="note://raw", resource_name="raw")
def raw(context: str) -> bytes:
    return b"\\x00\\xff"


@app.mcp_resource_trigger(arg_name="context", uri="note://{user-id}/{name}", resource_name="notes")
def notes(context: str) -> str:
    return context


@app.mcp_resource_trigger(arg_name="context", uri="note://broken", resource_name="broken")
def broken(context: str) -> str:
    raise ValueError("no")


@app.mcp_prompt_trigger(
    arg_name="context",
    prompt_name="review",
    prompt_arguments=[func.PromptArgument("code", "The code", required=True), func.PromptArgument("style")],
    title="Review",
    description="Reviews code",
    icons='[{"src": "https://example.com/i.png", "sizes": ["48x48"]}]',
    metadata='{"k": 1}',
)
def review(context) -> str:
    arguments = json.loads(context)["arguments"] if isinstance(context, str) else context.arguments
    return "Review: " + arguments["code"]


@app.mcp_prompt_trigger(arg_name="context", prompt_name="chat")
def chat(context) -> str:
    messages = [{"role": "user", "content": TEXT}, {"role": "assistant", "content": IMAGE}]
    return json.dumps({"messages": messages, "description": "A chat"})


@app.mcp_tool()
@app.blob_output(arg_name="file", connection="Files", path="notes/{mcptoolargs.name}.txt")
def save(file: func.Out[str], name: str, text: str) -> str:
    """Save a note."""
    file.set(text)
    return "saved"


@app.mcp_tool()
@app.blob_input(arg_name="file", connection="Files", path="notes/{mcptoolargs.name}.txt")
def load(file: func.InputStream, name: str) -> str:
    """Load a note."""
    return "nothing" if file is None else file.read().decode()


@app.mcp_tool()
@app.queue_output(arg_name="msg", queue_name="jobs", connection="Files")
def order(msg: func.Out[List[str]], item: str) -> str:
    """Order an item."""
    msg.set([item, item.upper()])
    return "ordered"


@app.mcp_tool()
@app.cosmos_db_input(arg_name="doc", database_name="d", container_name="c", connection="Cosmos")
def document(doc, name: str) -> str:
    """Needs a database."""
    return "never"


@app.timer_trigger(arg_name="timer", schedule="0 * * * * *")
def tick(timer: func.TimerRequest) -> None:
    pass


@app.mcp_tool_trigger(arg_name="context", tool_name="malformed", description="Bad", tool_properties="[{")
def malformed(context) -> str:
    return ""


@app.generic_trigger(
    arg_name="context", type="mcpToolTrigger", toolName="generic", description="Older", toolProperties="[]"
)
@app.generic_input_binding(
    arg_name="first",
    type="mcpToolProperty",
    propertyName="first",
    propertyType="string",
    description="",
    isRequired=False,
)
def generic(context, first: str) -> str:
    return json.dumps(first)
'''
"""All kinds of functions."""


def write_app(
    folder: Path,
    code: str,
    *,
    host: Mapping[str, Any] | None = None,
    settings: Mapping[str, str] | None = None,
) -> Path:
    """Write a Python function app into a folder, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "function_app.py").write_text(code, encoding="utf-8")
    (folder / "host.json").write_text(json.dumps(host or {"version": "2.0"}), encoding="utf-8")
    values = {"FUNCTIONS_WORKER_RUNTIME": "python", **(settings or {})}
    content = json.dumps({"IsEncrypted": False, "Values": values})
    (folder / "local.settings.json").write_text(content, encoding="utf-8")
    return folder


def write_node_app(folder: Path, files: Mapping[str, str], main: str = "index.js", **manifest: Any) -> Path:
    """Write a Node function app into a folder, with the tests' packages, and return the folder."""
    modules = package("@azure/functions").parents[1]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "node_modules").symlink_to(modules)
    content = {"name": "app", "main": main, **manifest}
    (folder / "package.json").write_text(json.dumps(content), encoding="utf-8")
    (folder / "host.json").write_text('{"version": "2.0"}', encoding="utf-8")
    for name, code in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(code, encoding="utf-8")
    return folder
