"""A server with one tool for each thing that the protocol can do.

It offers the tools that the official conformance suite calls by name, and shows how each of them is written. Run it
from the repository's folder with ``funcmcp run samples/everything/server.py``.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Annotated, Any

from funcmcp import Elicit, Header, ListRoots, MCPServer, Sample, ToolContext, ToolError, content

PAUSE = 0.05
"""Seconds between two notifications of the tools that send several."""

# One pixel, and a quarter of a millisecond of silence.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = b"RIFF\x28\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\4\0\0\0\0\0\0\0"

mcp = MCPServer("everything", version="1.0.0", title="Everything", instructions="Each tool shows one thing.")


def _form(name: str, kind: str = "string") -> dict[str, Any]:
    """Return the schema of a form with one required field."""
    return {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}


NAME_FORM = _form("name")

# Content


@mcp.tool
def test_simple_text() -> str:
    """Return a sentence."""
    return "This is a simple text response for testing."


@mcp.tool
def test_image_content() -> content.Image:
    """Return an image."""
    return content.Image(PNG, mime_type="image/png")


@mcp.tool
def test_audio_content() -> content.Audio:
    """Return a sound."""
    return content.Audio(WAV, mime_type="audio/wav")


@mcp.tool
def test_embedded_resource() -> content.EmbeddedResource:
    """Return a resource inside the result."""
    return content.EmbeddedResource(
        "test://embedded-resource", text="This is an embedded resource content.", mime_type="text/plain"
    )


@mcp.tool
def test_multiple_content_types() -> list[content.Text | content.Image | content.EmbeddedResource]:
    """Return a text, an image and a resource."""
    return [
        content.Text("Multiple content types test:"),
        content.Image(PNG, mime_type="image/png"),
        content.EmbeddedResource(
            "test://mixed-content-resource", text='{"test":"data","value":123}', mime_type="application/json"
        ),
    ]


@mcp.tool
def test_error_handling() -> str:
    """Fail, always."""
    raise ToolError("This tool intentionally returns an error for testing")


# Arguments

CONTACT_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@mcp.tool(input_schema=CONTACT_SCHEMA)
def json_schema_2020_12_tool(arguments: dict[str, Any]) -> str:
    """Take arguments that a hand-written schema describes; the schema is listed as it stands."""
    return f"Received: {', '.join(sorted(arguments))}"


@mcp.tool
def test_x_mcp_header(region: Annotated[str, Header("Region")]) -> str:
    """Take an argument that 2026-07-28 clients repeat in the header Mcp-Param-Region."""
    return f"Region: {region}"


# Notifications


@mcp.tool
async def test_tool_with_logging(context: ToolContext) -> str:
    """Send three log messages."""
    await context.log("info", "Tool execution started")
    await asyncio.sleep(PAUSE)
    await context.log("info", "Tool processing data")
    await asyncio.sleep(PAUSE)
    await context.log("info", "Tool execution completed")
    return "Tool with logging executed successfully"


@mcp.tool
async def test_tool_with_progress(context: ToolContext) -> str:
    """Report progress three times to a client that sent a progress token."""
    await context.progress(0, total=100)
    await asyncio.sleep(PAUSE)
    await context.progress(50, total=100)
    await asyncio.sleep(PAUSE)
    await context.progress(100, total=100)
    return "Tool with progress executed successfully"


@mcp.tool
async def test_logging_tool(context: ToolContext) -> str:
    """Log a sentence, which a 2026-07-28 client only gets if its request names a level."""
    await context.log("info", "This is a log message")
    return "Logged"


# Questions to the client, in every revision


@mcp.tool
async def test_sampling(prompt: str, context: ToolContext) -> str:
    """Ask the client's model to answer a prompt."""
    answer = await context.sample(prompt, max_tokens=100)
    return f"LLM response: {answer.text}"


@mcp.tool
async def test_missing_capability(context: ToolContext) -> str:
    """Ask the client's model, which 2026-07-28 clients without the capability get -32021 for."""
    answer = await context.sample("Say something", max_tokens=100)
    return answer.text


@mcp.tool
async def test_elicitation(message: str, context: ToolContext) -> str:
    """Ask the user for a response."""
    schema = {
        "type": "object",
        "properties": {"response": {"type": "string", "description": "User's response"}},
        "required": ["response"],
    }
    answer = await context.elicit(message, schema)
    return f"User response: action={answer.action}, content={answer.content}"


@mcp.tool
async def test_streaming_elicitation(context: ToolContext) -> str:
    """Ask the user for a name after reporting progress."""
    await context.progress(0, total=1)
    answer = await context.elicit("What is your name?", NAME_FORM)
    await context.progress(1, total=1)
    return f"User response: {answer.action}"


@mcp.tool
async def test_elicitation_sep1034_defaults(context: ToolContext) -> str:
    """Ask with a form whose fields are filled in beforehand."""
    properties = {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "description": "Verification status", "default": True},
    }
    answer = await context.elicit(
        "Please review and update the form fields with defaults", {"type": "object", "properties": properties}
    )
    return f"Elicitation completed: action={answer.action}, content={answer.content}"


def _titled(count: int, *, value: str, title: str) -> list[dict[str, str]]:
    """Return a form's choices: const and title."""
    return [{"const": f"{value}{n}", "title": f"{title} {n}"} for n in range(1, count + 1)]


@mcp.tool
async def test_elicitation_sep1330_enums(context: ToolContext) -> str:
    """Ask with a form that has every kind of choice."""
    properties = {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": _titled(3, value="value", title="Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": _titled(3, value="value", title="Choice")}},
    }
    answer = await context.elicit(
        "Please select options from the enum fields", {"type": "object", "properties": properties}
    )
    return f"Elicitation completed: action={answer.action}, content={answer.content}"


# Questions with the keys that the conformance suite answers in 2026-07-28


@mcp.tool
async def test_input_required_result_elicitation(context: ToolContext) -> str:
    """Greet the user by a name that is asked for."""
    answer = await context.elicit("What is your name?", NAME_FORM, key="user_name")
    return f"Hello, {(answer.content or {}).get('name', 'stranger')}!"


@mcp.tool
async def test_input_required_result_sampling(context: ToolContext) -> str:
    """Let the client's model answer a question."""
    answer = await context.sample("What is the capital of France?", max_tokens=100, key="capital_question")
    return f"LLM response: {answer.text}"


@mcp.tool
async def test_input_required_result_list_roots(context: ToolContext) -> str:
    """Tell how many roots the client has."""
    roots = await context.list_roots(key="client_roots")
    return f"Client has {len(roots)} root(s)"


@mcp.tool
async def test_input_required_result_request_state(context: ToolContext) -> str:
    """Ask for a confirmation, and tell that the sealed state came back."""
    await context.elicit("Please confirm", _form("ok", "boolean"), key="confirm")
    return "state-ok"


@mcp.tool
async def test_input_required_result_tampered_state(context: ToolContext) -> str:
    """Ask for a confirmation; a client that changed the state is refused before the tool runs."""
    await context.elicit("Please confirm", _form("ok", "boolean"), key="confirm")
    return "state-ok"


@mcp.tool
async def test_input_required_result_multiple_inputs(context: ToolContext) -> str:
    """Ask three questions at once."""
    answers = await context.ask(
        {
            "user_name": Elicit("What is your name?", NAME_FORM),
            "greeting": Sample("Generate a greeting", max_tokens=50),
            "client_roots": ListRoots(),
        }
    )
    return f"Received {len(answers)} answers"


@mcp.tool
async def test_input_required_result_multi_round(context: ToolContext) -> str:
    """Ask a question, and another one after its answer."""
    first = await context.elicit("Step 1: What is your name?", NAME_FORM, key="step1")
    second = await context.elicit("Step 2: What is your favorite color?", _form("color"), key="step2")
    return f"First: {first.action}, second: {second.action}"


@mcp.tool
async def test_input_required_result_capabilities(context: ToolContext) -> str:
    """Ask only what the client can answer."""
    questions: dict[str, Elicit | Sample] = {}
    if context.can("elicitation"):
        questions["user_name"] = Elicit("What is your name?", NAME_FORM)
    if context.can("sampling"):
        questions["greeting"] = Sample("Generate a greeting", max_tokens=50)
    answers = await context.ask(questions)
    return f"Received {len(answers)} answers"
