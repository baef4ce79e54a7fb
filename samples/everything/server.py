"""A server with a tool, a resource or a prompt for each part of the protocol.

The official conformance suite calls these features by their names. Run the server in the folder of the repository with
``funcmcp run samples/everything/server.py``, or over stdio with ``python -m samples.everything.server``. The tools that
ask the client a question are in ``questions.py``, and those whose calls become tasks in ``tasks.py``.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import Field

from funcmcp import Context, Header, MCPServer, ServerInfo, ToolError, content

from .questions import KeyedQuestions, Questions, form
from .tasks import Tasks

PAUSE = 0.05
"""Seconds between two notifications of the tools that send several."""

# One pixel, and a quarter of a millisecond of silence.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = b"RIFF\x28\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\4\0\0\0\0\0\0\0"

STAR = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M8 1l3 14-10-8h14L5 15z"/></svg>'

mcp = MCPServer(
    "everything",
    version="1.0.0",
    instructions="Each feature shows one thing.",
    sessions="memory",  # so that clients of the handshake era are notified of changes
    info=ServerInfo(
        title="Everything",
        website_url="https://everything.example.com",
        icons=[{"src": f"data:image/svg+xml,{quote(STAR)}", "mimeType": "image/svg+xml", "sizes": ["any"]}],
    ),
)


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
    """Return an error."""
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
    """Take arguments with a hand-written schema, which clients get unchanged."""
    return f"Received: {', '.join(sorted(arguments))}"


@mcp.tool
def test_x_mcp_header(
    region: Annotated[str, Header("Region"), Field(description="The region, which a header repeats")],
) -> str:
    """Take an argument that 2026-07-28 clients repeat in the header Mcp-Param-Region."""
    return f"Region: {region}"


# Notifications


@mcp.tool
async def test_tool_with_logging(context: Context) -> str:
    """Send three log messages."""
    await context.info("Tool execution started")
    await asyncio.sleep(PAUSE)
    await context.info("Tool processing data")
    await asyncio.sleep(PAUSE)
    await context.info("Tool execution completed")
    return "Tool with logging executed successfully"


@mcp.tool
async def test_tool_with_progress(context: Context) -> str:
    """Report progress three times to a client that sent a progress token."""
    await context.report_progress(0, total=100)
    await asyncio.sleep(PAUSE)
    await context.report_progress(50, total=100)
    await asyncio.sleep(PAUSE)
    await context.report_progress(100, total=100)
    return "Tool with progress executed successfully"


@mcp.tool
async def test_generator() -> Annotated[AsyncIterator[str], Field(description="The items")]:
    """Yield two items, which are progress as well."""
    yield "one"
    await asyncio.sleep(PAUSE)
    yield "two"


@mcp.tool
async def test_logging_tool(context: Context) -> str:
    """Log a sentence, which a 2026-07-28 client only gets if its request names a level."""
    await context.info("This is a log message")
    return "Logged"


@mcp.tool(timeout=None)
async def test_cancellation(label: Annotated[str, Field(description="Names the call")], context: Context) -> str:
    """Wait until the client cancels the call; the resource test://cancelled-calls then has its label."""
    try:
        await context.report_progress(0, total=1)  # the client may cancel after this notification
        await asyncio.Event().wait()
    finally:
        cancelled.append(label)
        mcp.notify_resource_updated("test://cancelled-calls")
    return "Only a cancellation ends the call."


@mcp.tool
async def test_reconnection(context: Context) -> str:
    """Close the connection before the response; a client of the handshake era reconnects and receives it."""
    await context.close_stream()
    await asyncio.sleep(PAUSE)
    return "Reconnection test completed successfully"


mcp.add(Questions)
mcp.add(KeyedQuestions)
mcp.add(Tasks)

# Resources

cancelled: list[str] = []


@mcp.resource("test://static-text")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@mcp.resource("test://static-binary", mime_type="image/png", size=len(PNG))
def static_binary() -> bytes:
    """An image."""
    return PNG


@mcp.resource("test://several-contents")
def several_contents() -> list[content.Contents]:
    """Two contents, each with its own URI and media type."""
    return [
        content.Contents("# Part one", uri="test://several-contents/1", mime_type="text/markdown"),
        content.Contents(blob=PNG, uri="test://several-contents/2", mime_type="image/png"),
    ]


@mcp.resource("test://watched-resource")
def watched_resource() -> str:
    """A resource to subscribe to; test_trigger_resource_update notifies subscribers that it has changed."""
    return "This is the content of the watched resource."


@mcp.resource("test://cancelled-calls")
def cancelled_calls() -> list[str]:
    """The labels of the cancelled calls of test_cancellation."""
    return cancelled


def complete_id(prefix: str) -> list[str]:
    """Return the ids that begin with a prefix."""
    return [value for value in ("123", "124", "200") if value.startswith(prefix)]


@mcp.resource("test://template/{id}/data", mime_type="application/json", completions={"id": complete_id})
def template_data(id: str) -> dict[str, Any]:
    """A resource for each id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


# Prompts


@mcp.prompt
def test_simple_prompt() -> str:
    """Return one sentence."""
    return "This is a simple prompt for testing."


CITIES = {"France": ["Paris", "Lyon", "Marseille"], "Italy": ["Palermo", "Parma", "Rome"]}


def complete_country(prefix: str) -> list[str]:
    """Return the countries that begin with a prefix, for arg1."""
    return [country for country in CITIES if country.lower().startswith(prefix.lower())]


def complete_city(prefix: str, arguments: dict[str, str]) -> list[str]:
    """Return the cities that begin with a prefix, for arg2; those of the country in arg1, if the client sends it."""
    all_cities = [city for cities in CITIES.values() for city in cities]
    cities = CITIES.get(arguments.get("arg1", ""), all_cities)
    return [city for city in cities if city.lower().startswith(prefix.lower())]


@mcp.prompt(completions={"arg1": complete_country, "arg2": complete_city})
def test_prompt_with_arguments(
    arg1: Annotated[str, Field(description="A country")], arg2: Annotated[str, Field(description="A city of it")]
) -> str:
    """Put two arguments into a sentence."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@mcp.prompt("test_prompt_with_embedded_resource")
def prompt_with_embedded_resource(
    resourceUri: Annotated[str, Field(description="URI of the resource")],  # noqa: N803 - the suite's
) -> list[str | content.EmbeddedResource]:
    """Show a resource and ask to process it."""
    resource = content.EmbeddedResource(resourceUri, text="Embedded resource content.", mime_type="text/plain")
    return [resource, "Please process the embedded resource above."]


@mcp.prompt
def test_prompt_with_image() -> list[str | content.Image]:
    """Show an image and ask to analyze it."""
    return [content.Image(PNG, mime_type="image/png"), "Please analyze the image above."]


@mcp.prompt
def test_prompt_with_all_content() -> content.PromptResult:
    """Return a message of every kind; the role of the last one is assistant."""
    return content.PromptResult(
        [
            content.Text("Look at these.", annotations={"audience": ["assistant"], "priority": 1.0}),
            content.Image(PNG, mime_type="image/png"),
            content.Audio(WAV, mime_type="audio/wav"),
            content.EmbeddedResource("test://static-binary", blob=PNG, mime_type="image/png"),
            content.ResourceLink("test://static-text", "static_text", mime_type="text/plain"),
            content.Message("What about them?", role="assistant"),
        ],
        description="One message of every kind",
    )


@mcp.prompt
async def test_input_required_result_prompt(context: Context) -> str:
    """Ask the user for a context, and return a prompt with it."""
    question = "What context should the prompt use?"
    answer = await context.elicit(question, form("context"), key="user_context")
    return f"Please proceed in this context: {(answer.content or {}).get('context', 'none')}"


# Changes while clients are connected, of which subscribers are notified


@mcp.tool
async def test_trigger_tool_change() -> str:
    """Add a tool, or remove it again."""

    def test_added_tool() -> str:
        """Return a sentence."""
        return "Still here"

    return _toggle(lambda: mcp.remove_tool("test_added_tool"), lambda: mcp.tool(test_added_tool))


@mcp.tool
async def test_trigger_prompt_change() -> str:
    """Add a prompt, or remove it again."""

    def test_added_prompt() -> str:
        """Return a sentence."""
        return "Still here"

    return _toggle(lambda: mcp.remove_prompt("test_added_prompt"), lambda: mcp.prompt(test_added_prompt))


@mcp.tool
async def test_trigger_resource_change() -> str:
    """Add a resource, or remove it again."""
    uri = "test://added-resource"
    return _toggle(lambda: mcp.remove_resource(uri), lambda: mcp.resource(uri)(static_text))


@mcp.tool
async def test_trigger_resource_update() -> str:
    """Notify subscribers that test://watched-resource has changed."""
    mcp.notify_resource_updated("test://watched-resource")
    return "Updated"


def _toggle(remove: Callable[[], object], add: Callable[[], object]) -> str:
    """Remove a feature, or add it if it does not exist."""
    try:
        remove()
    except KeyError:
        add()
        return "Added"
    return "Removed"


# Skills

mcp.add_skills(Path(__file__).parent / "skills")


if __name__ == "__main__":
    mcp.run()
