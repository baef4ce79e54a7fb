"""The table of methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp._protocol.jsonrpc import Request
from funcmcp._protocol.methods import METHODS
from funcmcp._protocol.revisions import REVISIONS
from funcmcp._server.catalog.features import Skill
from funcmcp._state.tasks.memory import MemoryTasks
from tests.server.parts import PER_REQUEST, prompt, resource, server, template, tool

if TYPE_CHECKING:
    from funcmcp._server.calls.route import RoutedRequest

SERVED = server(
    tool("t", interactive=True),
    prompt("p", interactive=True),
    resource("menu://today", interactive=True),
    template("menu://day/{day}", interactive=True),
    Skill("skill://s/SKILL.md", dict, (resource("skill://s/SKILL.md"),)),
    tasks=MemoryTasks(),
)


def routed(method: str, params: dict[str, Any] | None = None) -> RoutedRequest:
    return SERVED.routes.route(Request(1, method, params or {}))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_of_the_specification_has_a_route(method: str) -> None:
    route = routed(method).route
    assert route is not None
    assert route.method == method
    assert route.capability == METHODS[method].capability


@pytest.mark.parametrize("method", ["", "tools/Call", "notifications/initialized", "unheard/of"])
def test_an_unknown_method_has_none(method: str) -> None:
    request = routed(method)
    assert (request.route, request.feature, request.fault, request.interactive) == (None, None, None, False)


@pytest.mark.parametrize(
    ("method", "params", "key", "values"),
    [
        ("tools/call", {"name": "t"}, "t", {}),
        ("prompts/get", {"name": "p"}, "p", {}),
        ("resources/read", {"uri": "menu://today"}, "menu://today", {}),
        ("resources/read", {"uri": "menu://day/monday"}, "menu://day/{day}", {"day": "monday"}),
        ("resources/subscribe", {"uri": "menu://day/monday"}, "menu://day/{day}", {"day": "monday"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}}, "p", {}),
    ],
)
def test_a_request_is_routed_to_the_feature_that_it_names(
    method: str, params: dict[str, Any], key: str, values: dict[str, str]
) -> None:
    request = routed(method, params)
    assert request.feature is not None
    assert (request.feature.key, request.values, request.fault) == (key, values, None)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_handler_is_found_in_the_revisions_that_have_the_method(revision: str) -> None:
    request = routed("tools/call", {"name": "t"})
    assert request.route is not None
    assert SERVED.routes.handler(request, REVISIONS[revision]) is request.route.handler


def test_a_feature_is_looked_up_once_for_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    lookups: list[str] = []
    served = server(tool("t"))
    get = served.catalog.tools.get

    def counted(key: str) -> Any:
        lookups.append(key)
        return get(key)

    monkeypatch.setattr(served.catalog.tools, "get", counted)
    request = served.routes.route(Request(1, "tools/call", {"name": "t"}))
    served.routes.handler(request, REVISIONS[PER_REQUEST])
    assert request.require_feature().name == "t"
    assert request.interactive is False
    assert lookups == ["t"]
