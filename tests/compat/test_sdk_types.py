"""The types of the protocol under their names in ``mcp.types``."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp.compat import Context, FastMCP
from funcmcp.compat.mcp import types
from funcmcp.testing import Client


def test_types_can_be_made_and_read_with_both_forms_of_names() -> None:
    image = types.ImageContent(data="", mime_type="image/png")
    assert image == types.ImageContent.model_validate({"type": "image", "data": "", "mimeType": "image/png"})
    assert (getattr(image, "mimeType"), image.mime_type) == ("image/png", "image/png")  # noqa: B009 - hidden from types
    members: dict[str, Any] = {"structuredContent": {"a": 1}, "isError": True, "_meta": {"b": 2}}
    result = types.CallToolResult(content=[image], **members)
    assert (result.structured_content, result.is_error, result.meta) == ({"a": 1}, True, {"b": 2})
    assert not hasattr(image, "colour")


CONTENTS = types.TextResourceContents(uri="data://a", text="a", mime_type="text/plain")
LINK = types.ResourceLink(name="a", uri="data://a")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (types.TextContent(text="a"), {"content": [{"type": "text", "text": "a"}]}),
        (LINK, {"content": [{"type": "resource_link", "name": "a", "uri": "data://a"}]}),
        (
            [types.EmbeddedResource(resource=CONTENTS)],
            {
                "content": [
                    {"type": "resource", "resource": {"uri": "data://a", "text": "a", "mimeType": "text/plain"}},
                ],
            },
        ),
        (
            types.CallToolResult(content=[], structured_content={"a": 1}, is_error=True),
            {"structuredContent": {"a": 1}, "isError": True},
        ),
    ],
)
async def test_a_tool_may_return_them(value: Any, expected: dict[str, Any]) -> None:
    mcp = FastMCP("shop")

    @mcp.tool
    def look() -> Any:
        return value

    async with Client(mcp) as client:
        result = await client.call_tool("look", {})
    assert {name: result[name] for name in expected} == expected


async def test_a_prompt_and_a_resource_may_return_them() -> None:
    mcp = FastMCP("shop")

    @mcp.prompt
    def ask() -> types.GetPromptResult:
        message = types.PromptMessage(role="assistant", content=types.TextContent(text="a"))
        return types.GetPromptResult(description="b", messages=[message])

    @mcp.resource("data://a")
    def read() -> types.ReadResourceResult:
        return types.ReadResourceResult(contents=[CONTENTS])

    async with Client(mcp) as client:
        prompt = await client.get_prompt("ask", {})
        assert prompt["messages"] == [{"role": "assistant", "content": {"type": "text", "text": "a"}}]
        resource = await client.read_resource("data://a")
        assert resource["contents"] == [{"uri": "data://a", "mimeType": "text/plain", "text": "a"}]


QUESTIONS: dict[str, Any] = {
    "form": types.ElicitRequest(
        params=types.ElicitRequestFormParams(message="Size?", requested_schema={"type": "object"})
    ),
    "model": types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(
            messages=[types.SamplingMessage(role="user", content=types.TextContent(text="Hi"))], max_tokens=9
        )
    ),
    "roots": types.ListRootsRequest(),
}


async def test_a_tool_may_return_questions_of_them() -> None:
    mcp = FastMCP("questions")

    @mcp.tool
    async def ask(ctx: Context) -> str | types.InputRequiredResult:
        if ctx.input_responses is None:
            return types.InputRequiredResult(input_requests=QUESTIONS, request_state="asked")
        return f"{ctx.request_state}: {ctx.input_responses['form'].content['size']}"

    async with Client(mcp, revision="2026-07-28") as client:
        first = await client.request("tools/call", {"name": "ask", "arguments": {}})
        answers = {
            "form": {"action": "accept", "content": {"size": "big"}},
            "model": {"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "m"},
            "roots": {"roots": []},
        }
        second = {"inputResponses": answers, "requestState": first["requestState"]}
        result = await client.request("tools/call", {"name": "ask", "arguments": {}, **second})
    assert {name: question["method"] for name, question in first["inputRequests"].items()} == {
        "form": "elicitation/create",
        "model": "sampling/createMessage",
        "roots": "roots/list",
    }
    assert first["inputRequests"]["form"]["params"] == {
        "mode": "form",
        "message": "Size?",
        "requestedSchema": {"type": "object"},
    }
    assert result["content"] == [{"type": "text", "text": "asked: big"}]


@pytest.mark.parametrize(
    "notification",
    [
        types.ToolListChangedNotification(),
        types.PromptListChangedNotification(),
        types.ResourceListChangedNotification(),
        types.ResourceUpdatedNotification(params=types.ResourceUpdatedNotificationParams(uri="a://b")),
    ],
)
async def test_a_tool_may_send_notifications_of_them(notification: Any) -> None:
    mcp = FastMCP("notifications")

    @mcp.tool
    async def notify(ctx: Context) -> None:
        await ctx.send_notification(notification)

    received: list[Any] = []
    async with Client(mcp, revision="2025-11-25", on_notification=received.append) as client:
        await client.call_tool("notify")
    (message,) = received
    sent = {name: message[name] for name in ("method", "params") if message.get(name)}
    assert sent == notification.model_dump(by_alias=True, exclude_none=True)
