"""A function app with Azure's MCP triggers: notes in blobs. Serve it with ``funcmcp host`` or ``func start``."""

from __future__ import annotations

import json

import azure.functions as func

app = func.FunctionApp()

NAME = {"propertyName": "name", "propertyType": "string", "description": "The note's name", "isRequired": True}
TEXT = {"propertyName": "text", "propertyType": "string", "description": "The note's text", "isRequired": True}
PATH = "notes/{mcptoolargs.name}.txt"


@app.mcp_tool_trigger(
    arg_name="context",
    tool_name="save_note",
    description="Save a note.",
    tool_properties=json.dumps([NAME, TEXT]),
)
@app.blob_output(arg_name="note", connection="AzureWebJobsStorage", path=PATH)
def save_note(context: str, note: func.Out[str]) -> str:
    """Write the note's text into its blob."""
    arguments = json.loads(context)["arguments"]
    note.set(arguments["text"])
    return f"Saved {arguments['name']}."


@app.mcp_tool_trigger(
    arg_name="context",
    tool_name="load_note",
    description="Load a note.",
    tool_properties=json.dumps([NAME]),
)
@app.blob_input(arg_name="note", connection="AzureWebJobsStorage", path=PATH)
def load_note(context: str, note: func.InputStream) -> str:
    """Return the note's text."""
    if not note:
        return f"There is no note {json.loads(context)['arguments']['name']}."
    return note.read().decode()


@app.mcp_resource_trigger(
    arg_name="context",
    uri="notes://{name}",
    resource_name="note",
    description="A note, by its name.",
    mime_type="text/plain",
)
@app.blob_input(arg_name="note", connection="AzureWebJobsStorage", path="notes/{name}.txt")
def note_resource(context: str, note: func.InputStream) -> str:
    """Return the note's text, or nothing."""
    del context
    return note.read().decode() if note else ""


@app.mcp_prompt_trigger(
    arg_name="context",
    prompt_name="summarize_note",
    description="Ask for a summary of a note.",
    prompt_arguments=[func.PromptArgument("name", "The note's name", required=True)],
)
def summarize_note(context: func.PromptInvocationContext) -> str:
    """Return the message for the model."""
    return f"Load the note {context.arguments['name']} and summarize it in one sentence."
