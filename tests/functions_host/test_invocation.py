"""The invocation context and the binding data of each trigger."""

from __future__ import annotations

import json
from typing import Any

import pytest

from funcmcp._protocol.jsonrpc import Request
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.calls.channel import ClosedChannel
from funcmcp._server.calls.context import RequestContext
from funcmcp._server.calls.route import RoutedRequest
from funcmcp._server.connections.client import ConnectedClient
from funcmcp._transports.http.messages import HttpRequest
from funcmcp_host.invocation import prompt_trigger, resource_trigger, text_of, tool_trigger
from funcmcp_host.workers.worker import Value

INFO = {"name": "ClientApp", "version": "1.0.0"}


def context(
    params: dict[str, Any], *, session: str | None = "s", info: dict[str, Any] | None = None, path: str | None = "/mcp"
) -> RequestContext:
    client = ConnectedClient(REVISIONS["2025-06-18"], {}, INFO if info is None else info, session_id=session)
    pairs = [(b"host", b"localhost"), (b"x-custom", b"value"), (b"x-functions-key", b"secret")]
    pairs += [(b"x-ms-client-principal", b"p"), (b"authorization", b"Bearer t"), (b"x-many", b"1"), (b"x-many", b"2")]
    http = None if path is None else HttpRequest("POST", path, pairs)
    return RequestContext(RoutedRequest(Request(1, "tools/call", params)), client, ClosedChannel(), http)


HEADERS = {
    "Host": "localhost",
    "X-Custom": "value",
    "X-MS-CLIENT-PRINCIPAL": "p",
    "Authorization": "Bearer t",
    "X-Many": "1, 2",
}


def test_a_tool_gets_the_context_of_the_contract() -> None:
    arguments = {"param1": "value1", "param2": 42, "flag": True, "none": None, "list": [1, {"a": "ä"}]}
    trigger = tool_trigger(context({"name": "toolName", "arguments": arguments}), "context")
    assert json.loads(trigger.value.data) == {
        "name": "toolName",
        "arguments": arguments,
        "sessionid": "s",
        "clientinfo": INFO,
        "transport": {"name": "http-streamable", "sessionId": "s", "properties": {"headers": HEADERS}},
    }
    assert trigger.metadata["context"] == trigger.value
    assert trigger.metadata["mcptoolcontext"] == Value("json", trigger.value.data)
    assert trigger.metadata["mcpsessionid"] == Value("string", "s")
    assert json.loads(trigger.metadata["mcptoolargs"].data) == {
        "param1": "value1",
        "param2": "42",
        "flag": "True",
        "none": "",
        "list": '[1,{"a":"ä"}]',
    }


@pytest.mark.parametrize(("params", "present"), [({"name": "t"}, False), ({"name": "t", "arguments": {}}, True)])
def test_arguments_are_as_the_client_sent_them(params: dict[str, Any], present: bool) -> None:
    value = json.loads(tool_trigger(context(params), "c").value.data)
    assert ("arguments" in value) is present


def test_members_without_a_value_are_left_out() -> None:
    trigger = tool_trigger(context({"name": "t"}, session=None, info={}, path=None), "c")
    assert json.loads(trigger.value.data) == {"name": "t", "transport": {"name": "stdio", "properties": {}}}
    assert "mcpsessionid" not in trigger.metadata


def test_the_transport_of_older_clients_has_its_name() -> None:
    value = json.loads(tool_trigger(context({"name": "t"}, path="/runtime/webhooks/mcp/sse"), "c").value.data)
    assert value["transport"]["name"] == "http-sse"


def test_a_resource_gets_its_uri_and_the_values_of_its_template() -> None:
    trigger = resource_trigger(context({"uri": "a:b/7"}), "c", "a:b/7", {"user-id": "7"})
    value = json.loads(trigger.value.data)
    assert (value["uri"], value["sessionid"], "arguments" in value) == ("a:b/7", "s", False)
    assert trigger.metadata["mcpresourcecontext"] == Value("json", trigger.value.data)
    assert trigger.metadata["mcpresourceuri"] == Value("string", "a:b/7")
    assert trigger.metadata["user-id"] == Value("string", "7")
    assert trigger.value_of("User-Id") == "7"


def test_a_prompt_gets_its_name_and_arguments() -> None:
    trigger = prompt_trigger(context({"name": "p", "arguments": {"code": "x"}}), "c")
    assert json.loads(trigger.value.data)["arguments"] == {"code": "x"}
    assert json.loads(trigger.metadata["mcppromptargs"].data) == {"code": "x"}
    assert "mcppromptcontext" in trigger.metadata


@pytest.mark.parametrize(
    ("value", "text"), [("a", "a"), (1, "1"), (1.5, "1.5"), (True, "True"), (False, "False"), (None, ""), ({}, "{}")]
)
def test_arguments_as_texts(value: object, text: str) -> None:
    assert text_of(value) == text
