"""An agent: a program that lets a model use the tools of an MCP server until it can answer.

How it works: the model gets the task and the descriptions of the tools. While it answers with calls of tools, the
program makes them and sends the results back. A tool that may change something is called only if the user agrees.

Run it with ``python -m samples.agent.agent http://127.0.0.1:8000/mcp "How much tea is there?"``. MODEL_URL, MODEL_NAME
and MODEL_KEY name a model (see README.md).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import httpx2

from funcmcp import MCPError
from funcmcp.client import Client, ClientError, Tool

MAX_TURNS = 10

Message: TypeAlias = dict[str, Any]
Model: TypeAlias = Callable[[list[Message], list[dict[str, Any]]], Awaitable[Message]]
"""Returns the next message of the assistant, from the messages so far and the tools."""

Approve: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[bool]]
"""Returns whether the user agrees to a call of a tool with these arguments."""


async def run(task: str, client: Client, model: Model, approve: Approve) -> str:
    """Return the model's answer to a task; raise RuntimeError if it takes too many turns."""
    tools = {tool.name: tool for tool in await client.list_tools()}
    messages: list[Message] = [{"role": "user", "content": task}]
    for _ in range(MAX_TURNS):
        answer = await model(messages, [as_function(tool) for tool in tools.values()])
        messages.append(answer)
        calls = answer.get("tool_calls") or []
        if not calls:
            return str(answer.get("content") or "")
        for call in calls:
            text = await use(call["function"], tools, client, approve)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
    raise RuntimeError(f"The model has not answered after {MAX_TURNS} turns.")


def as_function(tool: Tool) -> dict[str, Any]:
    """Return the description of a tool for the model."""
    function = {"name": tool.name, "description": tool.description or "", "parameters": tool.input_schema}
    return {"type": "function", "function": function}


async def use(call: dict[str, Any], tools: dict[str, Tool], client: Client, approve: Approve) -> str:
    """Return the result of a call as a text. The model also reads why a call has failed, and can try again."""
    tool = tools.get(call["name"])
    if tool is None:
        return f"Error: there is no tool {call['name']!r}. Tools: {', '.join(tools)}."
    try:
        arguments = json.loads(call["arguments"] or "{}")  # some models send nothing to tools without arguments
    except ValueError as error:
        return f"Error: the arguments are not JSON: {error}"
    if not isinstance(arguments, dict):
        return "Error: the arguments are not a JSON object."
    only_reads = tool.annotations.get("readOnlyHint", False)  # so says the server: ask always if you do not trust it
    if not only_reads and not await approve(tool.name, arguments):
        return "The user did not agree to this call."
    try:
        result = await client.call_tool(tool.name, arguments)
    except MCPError as error:
        return f"Error: {error}"
    return f"Error: {result.text}" if result.is_error else result.text


class ChatCompletions:
    """A model behind the interface ``/chat/completions``.

    Args:
        url: The URL without this path, such as ``https://api.openai.com/v1``.
        name: The name of the model.
        key: The key; None without.
    """

    def __init__(self, url: str, name: str, key: str | None) -> None:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self._name = name
        self._http = httpx2.AsyncClient(base_url=url.rstrip("/") + "/", headers=headers, timeout=120)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __call__(self, messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        """Return the next message of the assistant; raise ModelError if there is none."""
        body = {"model": self._name, "messages": messages, "tools": tools}
        try:
            response = await self._http.post("chat/completions", json=body)
            response.raise_for_status()
            return dict(response.json()["choices"][0]["message"])
        except httpx2.HTTPStatusError as error:
            raise ModelError(f"The model's answer has the status {error.response.status_code}.") from error
        except (httpx2.HTTPError, ValueError, LookupError, TypeError) as error:
            raise ModelError(f"The model has not answered: {error or type(error).__name__}") from error


class ModelError(RuntimeError):
    """The model can't be reached, or its answer is not one."""


async def ask_on_terminal(name: str, arguments: dict[str, Any]) -> bool:
    """Ask the user on the terminal. Without one, the answer is no."""
    try:
        answer = await asyncio.to_thread(input, printable(f"Call {name} with {json.dumps(arguments)}? [y/N] "))
    except EOFError:
        return False
    return answer.strip().lower() == "y"


def printable(text: str) -> str:
    """Return a text of a model or a server without characters that move the cursor or hide a part of it."""
    return "".join(character if character.isprintable() or character in "\n\t" else "\ufffd" for character in text)


async def main(url: str, task: str) -> None:
    """Answer a task with the tools at a URL."""
    model = ChatCompletions(os.environ["MODEL_URL"], os.environ["MODEL_NAME"], os.environ.get("MODEL_KEY"))
    async with Client(url) as client:
        sys.stdout.write(f"{printable(await run(task, client, model, ask_on_terminal))}\n")
    await model.aclose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser("samples.agent.agent")
    parser.add_argument("url", help="the endpoint of the server")
    parser.add_argument("task")
    options = parser.parse_args()
    if not {"MODEL_URL", "MODEL_NAME"} <= os.environ.keys():
        sys.exit("Set MODEL_URL and MODEL_NAME; see README.md.")
    try:
        asyncio.run(main(options.url, options.task))
    except (ClientError, MCPError, RuntimeError) as error:
        sys.exit(printable(str(error)))
