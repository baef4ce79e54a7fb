"""Immutable dataclasses that are quick to import, and errors in words for wrong options."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Mapping  # noqa: TC003 - as in the package
from dataclasses import KW_ONLY, FrozenInstanceError, asdict, field, replace
from typing import Any

import pytest

from funcmcp import Auth, HTTPOptions, Limits, MCPServer, ProtocolOptions, RegistrationError, ServerInfo
from funcmcp._objects import definitions
from funcmcp._objects.definitions import definition
from funcmcp.auth import APIKeys
from funcmcp.redis import RedisSessions
from funcmcp.tasks import RedisTasks, TaskOptions

pytestmark = [
    pytest.mark.every_python("Python's own SQLite, dataclasses, JSON or character tables decide it."),
    pytest.mark.branches("Wrong options of servers are errors."),
]


@definition
class Dish:
    _: KW_ONLY
    price: float = 1.0
    vegetarian: bool = False
    prices: Mapping[str, float] = field(default_factory=dict)


@definition
class Soup(Dish):
    name: str
    spoons: int = 1


def test_values_are_taken_by_position_in_the_order_of_their_declaration_and_by_name() -> None:
    soup = Soup("Minestrone", 2, price=6.5)
    assert vars(soup) == {"price": 6.5, "vegetarian": False, "prices": {}, "name": "Minestrone", "spoons": 2}
    assert Soup(name="Minestrone").spoons == 1
    assert soup.prices is not Soup("Minestrone").prices
    assert str(inspect.signature(Soup)).startswith("(name: 'str', spoons: 'int' = 1, *, price: 'float' = 1.0, ")


@pytest.mark.parametrize(
    ("positional", "named", "text"),
    [
        ((), {}, "missing a required argument: 'name'"),
        (("a", 1, 2.0), {}, r"^Soup takes its options by name, such as Soup\(.*=2\.0\)\.$"),
        (("a",), {"colour": "red"}, r"^Soup has no option 'colour'\. Valid options: price, vegetarian, prices, name, "),
        ((), {"spoons": 1}, "missing a required argument: 'name'"),
        (("a",), {"name": "b"}, "multiple values for argument 'name'"),
    ],
)
def test_an_invalid_call_names_the_parameter(positional: tuple[Any, ...], named: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        Soup(*positional, **named)


def test_definitions_equal_themselves_only() -> None:
    soup = Soup("Minestrone", price=6.5)
    cold = replace(soup, name="Gazpacho")
    assert (cold.name, cold.price, soup.name) == ("Gazpacho", 6.5, "Minestrone")
    assert soup != replace(soup)
    with pytest.raises(FrozenInstanceError):
        soup.name = "Gazpacho"  # type: ignore[misc]


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
        (
            ProtocolOptions,
            [],
            {"foo": 1},
            r"^ProtocolOptions has no option 'foo'\. Valid options: revisions, offer_tools",
        ),
        (
            ProtocolOptions,
            [],
            {"page_size": "5"},
            r"^ProtocolOptions\.page_size must be an integer, or None; got '5'\.$",
        ),
        (
            ProtocolOptions,
            [],
            {"list_ttl": "5"},
            r"^ProtocolOptions\.list_ttl must be a number of seconds, .*; got '5'\.$",
        ),
        (
            ProtocolOptions,
            [],
            {"offer_tools": 1},
            r"^ProtocolOptions\.offer_tools must be True, False or None; got 1\.$",
        ),
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
    ],
)
def test_an_option_of_another_framework_leads_to_what_to_write(option: str, hint: str) -> None:
    mcp: Any = MCPServer("shop")
    with pytest.raises(RegistrationError, match=f"^Unknown option '{option}' of 'add'\\. .*{hint}"):
        mcp.tool("add", **{option: None})


def test_an_option_that_resources_have_is_none_of_another_framework() -> None:
    MCPServer("shop").resource("menu://today", name="menu", annotations={"priority": 1.0})(lambda: "soup")


def test_options_can_not_be_changed() -> None:
    http = HTTPOptions(path="/a")
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'path'"):
        http.path = "/b"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'paths'"):
        http.paths = "/b"  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'path'"):
        del http.path
    assert http.path == "/a"


def test_options_are_compared_by_their_values() -> None:
    assert ProtocolOptions(page_size=5) == ProtocolOptions(page_size=5)
    assert hash(ProtocolOptions(page_size=5)) == hash(ProtocolOptions(page_size=5))
    assert ProtocolOptions(page_size=5) != ProtocolOptions(page_size=6)
    assert ProtocolOptions().__eq__(ServerInfo()) is NotImplemented


def test_copies_of_options_have_their_values() -> None:
    options = ProtocolOptions(page_size=5, read_ttl=2)
    assert (
        pickle.loads(pickle.dumps(options)) == copy.deepcopy(options) == ProtocolOptions(**asdict(options)) == options
    )
    assert replace(options, page_size=6) == ProtocolOptions(page_size=6, read_ttl=2)
    with pytest.raises(ValueError, match=r"page_size must be at least 1"):
        replace(options, page_size=0)


def test_the_representation_of_options_is_the_call_of_the_constructor() -> None:
    assert repr(TaskOptions("required", ttl=60)) == (
        "TaskOptions(mode='required', detaches=False, ttl=60, keep=900.0, poll=None, attempts=None, retry=None, "
        "delay=0.0, queue='default', concurrency=None)"
    )


def test_the_signature_of_options_has_their_names_and_values() -> None:
    signature = inspect.signature(TaskOptions)
    names = ["mode", "detaches", "ttl", "keep", "poll", "attempts", "retry", "delay", "queue", "concurrency"]
    assert list(signature.parameters) == names
    assert signature.parameters["mode"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert signature.parameters["ttl"].kind is inspect.Parameter.KEYWORD_ONLY
    assert signature.parameters["ttl"].default == 3600.0


def test_a_required_option_is_missing() -> None:
    with pytest.raises(TypeError, match="authenticator"):
        Auth()  # type: ignore[call-arg]


def test_a_copy_has_other_values() -> None:
    soup = Soup("Minestrone", 2, price=6.5)
    copied = definitions.replace(soup, spoons=3)
    assert vars(copied) == vars(replace(soup, spoons=3))
    assert (type(copied), soup.spoons) == (Soup, 2)
    with pytest.raises(TypeError, match="Soup has no option 'colour'"):
        definitions.replace(soup, colour="red")
    with pytest.raises(RegistrationError, match="ttl must be a number of seconds"):
        definitions.replace(TaskOptions(), ttl="long")


def test_a_valid_call_is_not_bound_to_the_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[Any] = []
    monkeypatch.setattr(definitions, "_check_call", lambda cls, *_call: bound.append(cls))
    Soup("Minestrone", 2, price=6.5)
    assert bound == []
