"""A request with its route and its feature."""

from __future__ import annotations

from dataclasses import replace

import pytest

from funcmcp._protocol.errors import MCPError
from funcmcp._protocol.jsonrpc import Request
from funcmcp._server.calls.route import Audience, Interactivity, Route, RoutedRequest, with_scheme_of
from tests.server.parts import tool

REQUEST = Request(1, "tools/call", {})


async def handle(context: object) -> object:
    return context


ROUTE = Route("tools/call", handle, Audience.FEATURE, None, Interactivity.FEATURE, "tools", frozenset({"2026-07-28"}))


@pytest.mark.parametrize(
    ("interactivity", "feature_is_interactive", "expected"),
    [
        (Interactivity.NEVER, True, False),
        (Interactivity.FEATURE, True, True),
        (Interactivity.FEATURE, False, False),
        (Interactivity.ALWAYS, False, True),
    ],
)
def test_the_route_and_the_feature_decide_whether_messages_may_precede_the_response(
    interactivity: Interactivity, feature_is_interactive: bool, expected: bool
) -> None:
    route = replace(ROUTE, interactivity=interactivity)
    assert RoutedRequest(REQUEST, route, tool("it", interactive=feature_is_interactive)).interactive is expected


def test_a_request_without_route_or_feature_is_not_interactive() -> None:
    assert RoutedRequest(REQUEST).interactive is False
    assert RoutedRequest(REQUEST, ROUTE).interactive is False


def test_the_error_of_a_failed_lookup_is_raised_where_the_feature_is_needed() -> None:
    feature = tool("it")
    assert RoutedRequest(REQUEST, ROUTE, feature).require_feature() is feature
    fault = MCPError(-32602, "Unknown tool")
    with pytest.raises(MCPError) as caught:
        RoutedRequest(REQUEST, ROUTE, fault=fault).require_feature()
    assert caught.value is fault


@pytest.mark.parametrize(
    ("sent", "routed"),
    [("DATA://a", "data://a"), ("data://a", "data://a"), ("other://a", "other://a"), (5, 5)],
)
def test_a_read_has_the_scheme_as_it_is_registered(sent: object, routed: object) -> None:
    request = RoutedRequest(Request(1, "resources/read", {"uri": sent}), ROUTE, None)
    assert with_scheme_of("data://a", request).request.params["uri"] == routed
