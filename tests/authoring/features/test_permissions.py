from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from funcmcp import MCPServer, RegistrationError, prompt, resource, tool
from funcmcp._auth.access import PRINCIPALS_ONLY, Access
from funcmcp._serving.composition import runtime_of

if TYPE_CHECKING:
    from funcmcp._auth.principal import Principal


def allow(principal: Principal) -> bool:
    return principal.subject == "bob"


def say(it: str = "") -> str:
    return it


def registered(options: dict[str, Any]) -> list[Access]:
    """Return what each kind of feature has of the options."""
    mcp = MCPServer("Orders")
    mcp.tool("say", **options)(say)
    mcp.prompt("say", **options)(say)
    mcp.resource("a://it", name="it", **options)(lambda: "")
    mcp.resource("a://some/{it}", name="some", **options)(say)
    mcp.resource_lister("a", **options)(say)
    server = runtime_of(mcp).server
    return [
        *(feature.access for feature in server.catalog.features()),
        *(lister.access for lister in server.catalog.listers),
    ]


@pytest.mark.parametrize(
    ("options", "access"),
    [
        ({}, PRINCIPALS_ONLY),
        ({"allow_anonymous": True}, Access(allow_anonymous=True)),
        ({"scopes": ["a", "b", "a"]}, Access(required_scopes=("a", "b"))),
        ({"scopes": {"a"}, "authorize": allow}, Access(required_scopes=("a",), authorize=allow)),
    ],
)
def test_every_kind_of_feature_takes_who_may_use_it(options: dict[str, Any], access: Access) -> None:
    assert registered(options) == [access] * 5


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"allow_anonymous": 1}, "allow_anonymous of say must be True or False, not int"),
        ({"scopes": "orders.read"}, "scopes of say must be a list of strings, not str"),
        ({"scopes": ["two words"]}, "'two words' is not a scope"),
        ({"scopes": [7]}, "7 is not a scope"),
        ({"authorize": True}, "authorize of say must be a function, not bool"),
        ({"allow_anonymous": True, "scopes": ["a"]}, "say has allow_anonymous=True"),
        ({"allow_anonymous": True, "authorize": allow}, "say has allow_anonymous=True"),
    ],
)
def test_what_contradicts_itself_or_is_no_such_thing_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(RegistrationError, match=words):
        MCPServer("Orders").tool("say", **options)(say)


def test_methods_take_it_too() -> None:
    class Orders:
        @tool(scopes=["a"])
        def one(self) -> str:
            return ""

        @prompt(allow_anonymous=True)
        def two(self) -> str:
            return ""

        @resource("a://it", authorize=allow)
        def three(self) -> str:
            return ""

    mcp = MCPServer("Orders")
    mcp.add(Orders)
    found = {feature.key: feature.access for feature in runtime_of(mcp).server.catalog.features()}
    assert found == {
        "one": Access(required_scopes=("a",)),
        "two": Access(allow_anonymous=True),
        "a://it": Access(authorize=allow),
    }
