"""A model behind OpenAI's API that calls the tool it has for the price of tea, and repeats what the tool returns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

ARGUMENTS = json.dumps({"item": "tea"})
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def name_of_tool(tools: list[dict[str, Any]]) -> str:
    """Return the name of the only tool, in either form of a declaration."""
    (tool,) = tools
    return str(tool.get("function", tool)["name"])


async def chat_completions(request: Request) -> JSONResponse:
    body = await request.json()
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if results:
        message: dict[str, Any] = {"role": "assistant", "content": f"The tool says {results[-1]}"}
    else:
        function = {"name": name_of_tool(body["tools"]), "arguments": ARGUMENTS}
        calls = [{"id": "call_1", "type": "function", "function": function}]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
    choice = {"index": 0, "finish_reason": "stop" if results else "tool_calls", "message": message}
    return JSONResponse(
        {"id": "1", "object": "chat.completion", "created": 1, "model": "gpt-5", "choices": [choice], "usage": USAGE}
    )


async def responses(request: Request) -> JSONResponse:
    body = await request.json()
    results = [item["output"] for item in body["input"] if item.get("type") == "function_call_output"]
    if results:
        content = [{"type": "output_text", "text": f"The tool says {results[-1]}", "annotations": []}]
        output = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    else:
        call = {"call_id": "call_1", "name": name_of_tool(body["tools"]), "arguments": ARGUMENTS}
        output = {"type": "function_call", "id": "fc_1", "status": "completed", **call}
    return JSONResponse(
        {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "gpt-5",
            "status": "completed",
            "output": [output],
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
        }
    )


app = Starlette(
    routes=[
        Route("/chat/completions", chat_completions, methods=["POST"]),
        Route("/responses", responses, methods=["POST"]),
    ]
)
