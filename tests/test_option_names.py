"""Wrong options of classes of options are errors in words."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp import Auth, HTTPOptions, Limits, ListOptions, MCPServer, RegistrationError, ServerInfo
from funcmcp.auth import APIKeys
from funcmcp.redis import RedisSessions
from funcmcp.tasks import RedisTasks, TaskOptions


async def anyone(_credentials: object) -> None:
    return None


@pytest.mark.parametrize(
    ("cls", "args", "options", "text"),
    [
        (HTTPOptions, [], {"foo": 1}, r"^HTTPOptions has no option 'foo'\. Valid options: path, sse, websocket, "),
        (HTTPOptions, ["/x"], {}, r"^HTTPOptions takes its options by name, such as HTTPOptions\(path='/x'\)\.$"),
        (HTTPOptions, [], {"proxies": "1"}, r"^HTTPOptions\.proxies must be an integer, 0 or more; got '1'\.$"),
        (HTTPOptions, [], {"allowed_hosts": 5}, r"^HTTPOptions\.allowed_hosts must be a list of strings; got 5\.$"),
        (Limits, [], {"foo": 1}, r"^Limits has no option 'foo'\. Valid options: message_bytes"),
        (ListOptions, [], {"foo": 1}, r"^ListOptions has no option 'foo'\. Valid options: page_size, list_ttl"),
        (ListOptions, [], {"page_size": "5"}, r"^ListOptions\.page_size must be an integer, or None; got '5'\.$"),
        (ListOptions, [], {"list_ttl": "5"}, r"^ListOptions\.list_ttl must be a number of seconds, .*; got '5'\.$"),
        (ListOptions, [], {"enable_tools": 1}, r"^ListOptions\.enable_tools must be True, False or None; got 1\.$"),
        (ServerInfo, [], {"foo": 1}, r"^ServerInfo has no option 'foo'\. Valid options: title"),
        (ServerInfo, [], {"icons": "x.png"}, r"^ServerInfo\.icons must be a list of Icon .*; got 'x\.png'\.$"),
        (ServerInfo, [], {"icons": 5}, r"^ServerInfo\.icons must be a list of Icon objects, .*; got 5\.$"),
        (Auth, [APIKeys], {}, r"^Auth needs an authenticator, .*; got the class APIKeys\.$"),
        (Auth, ["secret"], {}, r"^Auth needs an authenticator, .*; got str\.$"),
        (Auth, [anyone, "x"], {}, r"^Auth\.resource must be ProtectedResource\(\.\.\.\) or None; got str\.$"),
        (Auth, [anyone], {"foo": 1}, r"^Auth has no option 'foo'\. Valid options: authenticator, resource"),
        (APIKeys, ["x"], {}, r"^APIKeys takes a dict with the key of each caller, .*; got str\.$"),
        (TaskOptions, [], {"foo": 1}, r"^TaskOptions has no option 'foo'\. Valid options: mode, detaches, ttl"),
        (TaskOptions, ["optional", True], {}, r"^TaskOptions takes its options by name, .*\(detaches=True\)\.$"),
        (RedisTasks, [5], {}, r"^A store in Redis needs a URL, such as 'redis://localhost', or a link; got 5\.$"),
        (RedisSessions, [None], {}, r"^A store in Redis needs a URL, .*; got None\.$"),
    ],
)
def test_a_wrong_option_is_a_type_error_in_words(cls: Any, args: list[Any], options: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        cls(*args, **options)


@pytest.mark.parametrize("options", [{"ttl": "5"}, {"keep": None}, {"poll": True}])
def test_times_of_tasks_are_numbers(options: dict[str, Any]) -> None:
    with pytest.raises(RegistrationError, match=r"must be a number of seconds; got "):
        TaskOptions(**options)


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("annotations", "Write read_only=, destructive="),
        ("structured_output", "the return annotation decides"),
        ("exclude_args", "Register a service"),
        ("serializer", "Return content blocks"),
        ("version", "only servers have versions"),
    ],
)
def test_an_option_of_another_framework_leads_to_what_to_write(option: str, hint: str) -> None:
    mcp: Any = MCPServer("shop")
    with pytest.raises(RegistrationError, match=f"^Unknown option '{option}' of 'add'\\. .*{hint}"):
        mcp.tool("add", **{option: None})


def test_an_option_that_resources_have_is_none_of_another_framework() -> None:
    MCPServer("shop").resource("menu://today", name="menu", annotations={"priority": 1.0})(lambda: "soup")
