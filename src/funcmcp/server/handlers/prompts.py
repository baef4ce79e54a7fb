"""`prompts/list` and `prompts/get`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp.protocol import shape
from funcmcp.protocol.errors import InvalidParams
from funcmcp.server.catalog.features import EncodedResult
from funcmcp.server.handlers.lists import list_registry
from funcmcp.server.handlers.runs import completed, open_rounds, run

if TYPE_CHECKING:
    from funcmcp.server.calls.context import Context
    from funcmcp.server.catalog.features import Prompt
    from funcmcp.server.dispatch import Server


async def list_prompts(server: Server, context: Context) -> bytes:
    """Answer `prompts/list`."""
    return await list_registry(server, context, "prompts", server.prompts, shape.definition)


async def get_prompt(server: Server, context: Context) -> dict[str, Any] | bytes:
    """Answer `prompts/get`."""
    params, revision = context.request.params, context.client.revision
    prompt = find_prompt(server, params.get("name"))
    arguments = texts(params.get("arguments", {}), "arguments")
    open_rounds(server, context, prompt)
    result = await run(server, prompt, prompt.handler(context, arguments))
    if isinstance(result, EncodedResult):
        return completed(result.text, server.end_of_prompt) if revision.per_request else result.text
    return shape.prompt_result(result, revision) if "messages" in result else result


def find_prompt(server: Server, name: object) -> Prompt:
    """Return the prompt of a name; raise InvalidParams."""
    if type(name) is not str:
        raise InvalidParams('"name" must be a string.')
    prompt: Prompt | None = server.prompts.get(name)
    if prompt is None:
        raise InvalidParams(f"Unknown prompt: {name[:128]}")
    return prompt


def texts(value: object, member: str) -> dict[str, str]:
    """Return an object of texts; raise InvalidParams."""
    if type(value) is dict:
        for text in value.values():
            if type(text) is not str:
                break
        else:
            return value
    raise InvalidParams(f'"{member}" must be an object whose values are strings.')
