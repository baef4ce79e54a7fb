"""Routes of HTTP triggers: what they match, and what ASP.NET Core rejects."""

from __future__ import annotations

import pytest

from funcmcp_host.bindings import BindingError
from funcmcp_host.route_patterns import (
    FunctionRoute,
    RouteTemplate,
    check_route,
    function_template,
    is_of_the_host,
    shadowing,
)


@pytest.mark.parametrize(
    ("route", "path", "values"),
    [
        ("a/{b}", "/a/x", {"b": "x"}),
        ("a/{b}", "/a", None),
        ("a/{b}", "/a/x/y", None),
        ("a/{b?}", "/a", {}),
        ("a/{b=5}", "/a", {"b": "5"}),
        ("a/{b:int}", "/a/x", None),
        ("a/{b:guid}", "/a/0f8fad5b-d9cb-469f-a165-70867728950e", {"b": "0f8fad5b-d9cb-469f-a165-70867728950e"}),
        ("a/{b:length(2)}", "/a/xyz", None),
        ("a/{b:min(3)}", "/a/2", None),
        ("a/{b:min(3)}", "/a/3", {"b": "3"}),
        ("a/{b:min(3)}", "/a/x", None),
        ("a/{b:int:range(1,5)}", "/a/5", {"b": "5"}),
        ("a/{b}.json", "/a/x.json", {"b": "x"}),
        ("a/{b}.json", "/a/.json", None),
        ("{*rest}", "/x/y", {"rest": "x/y"}),
        ("a/{**rest}", "/a", {}),
        ("a/{*rest=x}", "/a/", {"rest": "x"}),
        ("a/{*rest:int}", "/a", None),
        ("a/{*rest:nonfile}", "/a", {}),
        ("a/{**rest}", "/b", None),
        ("a", "/a/", {}),
        ("a/{b}", "/a//", None),
        ("a/{b}", "//a/x", None),
        ("a/{b}", "/a//x", None),
        ("a/{*rest}", "/a//x", None),
        ("a/{*rest}", "/a/x//y/", {"rest": "x//y/"}),
        ("A/{b}", "/a/X%2Fy", {"b": "X%2Fy"}),
        ("files/{name}.{ext}", "/files/a.txt", {"name": "a", "ext": "txt"}),
        ("files/{name}.{ext}", "/files/a.b.txt", {"name": "a.b", "ext": "txt"}),
        ("files/{name}.{ext}", "/files/a.", None),
        ("files/{name}.{ext}", "/files/.a", None),
        ("files/{name}.{ext}", "/files/a", None),
        ("files/{name}.{ext}", "/files", None),
        ("files/{name}.{ext?}", "/files/a.txt", {"name": "a", "ext": "txt"}),
        ("files/{name}.{ext?}", "/files/a", {"name": "a"}),
        ("files/{name}.{ext?}", "/files/a.", None),
        ("{x}-{y}", "/1-2", {"x": "1", "y": "2"}),
        ("{x}-{y}", "/1-2-3", {"x": "1-2", "y": "3"}),
        ("{x}-{y}", "/1--2", {"x": "1-", "y": "2"}),
        ("{x}-{y}", "/-1", None),
        ("{x:int}-{y}", "/a-1", None),
        ("{x}AB{y}", "/1abİ", {"x": "1", "y": "İ"}),
        ("v{x}.{y}-end", "/V1.2-END", {"x": "1", "y": "2"}),
        ("v{x}.{y}-end", "/v1.2-end2", None),
        ("v{x}.{y}", "/w1.2", None),
        ("{a}..{b}x{c}", "/xy..z", None),  # no text is left for b
        ("x{a}y{b}", "/xxay1", None),  # ASP.NET Core looks for a text once, from the right
        ("/orders/{order-id}/", "/orders/7", {"order-id": "7"}),
        ("a/{{b}}", "/a/{B}", {}),
        ("a/{b=c:d}", "/a", {"b": "c:d"}),
        ("a/{b:int?}", "/a", {}),
        ("a/{b:int?}", "/a/x", None),
        ("key", "/\u212aEY", None),  # the Kelvin sign, whose lower case is k
        ("is", "/\u0131\u017f", None),  # letters whose upper case is I and S
        ("\u00fc/\u00df", "/\u00dc/\u00df", {}),
    ],
)
def test_a_route_matches_as_in_asp_net_core(route: str, path: str, values: dict[str, str] | None) -> None:
    assert RouteTemplate(route).match(path) == values


GUID = "0f8fad5b-d9cb-469f-a165-70867728950e"
VALUES = {
    "int": ["5", "-5", "+5", " 5 ", "2147483647", "-2147483648"],
    "long": ["2147483648", "9223372036854775807"],
    "bool": ["true", "FALSE", " True "],
    "guid": [GUID, GUID.upper(), GUID.replace("-", ""), f"{{{GUID}}}", f"({GUID})"],
    "double": ["5", "1e3", "1,000.5", ".5", "5.", "nan", "-Infinity", "1E400"],
    "float": ["-1.5E-3"],
    "decimal": ["5", "1,000.5", ".5", "5-", "- 5", "79228162514264337593543950335"],
    "datetime": [
        *(
            "2020-01-31",
            "2020-1-2",
            "2020-01-02T03:04:05Z",
            "2020-01-02 03:04:05.678+01:00",
            "01-31-2020",
            "2020.01.31",
        ),
        *("1 Jan 2020", "January 31, 2020", "Wed, 01 Jan 2020 10:00:00 GMT", "10:30", "10:30 PM", "Jan 2020"),
    ],
    "alpha": ["abC"],
    "length(2)": ["ab", "\U0001f600"],
    "length( 1, 2 )": ["a", "ab"],
    "minlength(2)": ["ab", "abc"],
    "maxlength(2)": ["a", "ab"],
    "min(5)": ["5", "99"],
    "max(5)": ["-1", "5"],
    "range(1,5)": ["1", "5"],
    "file": ["a.b", ".b", "a..b"],
    "nonfile": ["a", "a.", "a.."],
    "required": ["a"],
    "regex(^[a-c]+$)": ["abc", "ABC"],
    "regex(b)": ["abc"],
    "regex(^a:b$)": ["a:b"],
    "regex(^\\d{{2}}$)": ["12"],
    "regex(^(?!adm))": ["x"],
    "regex(^(?!api|docs)(?!\\(x\\)).+$)": ["adm", "(y)"],
    "Regex(^(a|b)$):MaxLength(1)": ["a", "B"],
    "int:alpha": [],
}
OTHERS = {
    "int": ["1_0", "1.0", "1e3", "2147483648", "0x5", "\u0663", "5 5", "--5", "x"],
    "long": ["9223372036854775808", "1.0"],
    "bool": ["1", "0", "yes", "on", "t"],
    "guid": [f"urn:uuid:{GUID}", f"{{{GUID})", f"{GUID}0", "x"],
    "double": ["1_0", "inf", "1e", ",5", ".", "0x1"],
    "decimal": ["1e3", "NaN", "79228162514264337593543950336", "+5-"],
    "datetime": ["12345", "2020-13-01", "2020-02-30", "25:00", "2020-01-01T25:00", "today", "1 Foo 2020", "x 10:30"],
    "alpha": ["a1", "\u00e9", "ab\n"],
    "length(2)": ["a", "abc"],
    "minlength(2)": ["\u00e9"],
    "min(5)": ["4", "x", "5.0"],
    "max(5)": ["6", "x"],
    "range(1,5)": ["0", "6"],
    "file": ["a", "a.", "a..."],
    "nonfile": ["a.b"],
    "regex(^[a-c]+$)": ["abd"],
    "regex(^(?!adm))": ["adm", "ADM"],
    "regex(^(?!api|docs)(?!\\(x\\)).+$)": ["apis", "DOCS", "(x)"],
    "int:alpha": ["5", "a"],
}


@pytest.mark.parametrize(("constraint", "values"), VALUES.items())
def test_constraints_accept_what_those_of_asp_net_core_accept(constraint: str, values: list[str]) -> None:
    template = RouteTemplate(f"{{v:{constraint}}}")
    assert [value for value in values if template.match(f"/{value}") is None] == []


@pytest.mark.parametrize(("constraint", "values"), OTHERS.items())
def test_constraints_reject_what_those_of_asp_net_core_reject(constraint: str, values: list[str]) -> None:
    template = RouteTemplate(f"{{v:{constraint}}}")
    assert [value for value in values if template.match(f"/{value}") is not None] == []


@pytest.mark.parametrize("constraint", ["int", "long", "min(1)", "max(5)", "range(1,9)"])
def test_a_number_may_have_any_length(constraint: str) -> None:
    template = RouteTemplate(f"{{id:{constraint}}}")
    for digits in ("9" * 6000, "-" + "9" * 6000, "1" * 6000):
        assert template.match(f"/{digits}") is None
    assert template.match("/" + "0" * 6000 + "3") is not None


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        *(
            (f"a/{{b:{text}}}", "can't be read")
            for text in ("min(x)", "foo", "int(5)", "length", "length(2,x)", "range(5,1)", "regex([)")
        ),
        ("a/{b:length}/{c}", "can't be read"),
        ("a/{b:int(2)x}", "can't be read"),
        ("a/{b:Length(2,X)}", r"'b' has a constraint that can't be read: length\(2,X\)"),
        ("{a}/{A}", "two variables of the same name"),
    ],
)
def test_a_route_that_asp_net_core_rejects_is_an_error(route: str, reason: str) -> None:
    with pytest.raises(BindingError, match=reason):
        RouteTemplate(route)


def test_a_route_of_texts_is_more_literal_than_one_of_variables() -> None:
    routes = ["a/b", "a/{x}-{y}", "a/{x:int}", "a/{x}", "a/{*x:int}", "a/{*x}"]
    orders = [RouteTemplate(route).order for route in routes]
    assert orders == sorted(orders) == [(1, 1), (1, 2), (1, 2), (1, 3), (1, 4), (1, 5)]


@pytest.mark.parametrize("route", ["admin", "/Admin/x", "administrators", "runtime/x"])
def test_routes_that_the_functions_host_reserves_are_an_error(route: str) -> None:
    with pytest.raises(BindingError, match="reserves"):
        function_template("api", route)
    assert function_template("", "x/admin").match("/x/admin") == {}


def test_paths_of_the_host_are_those_below_two_of_its_own() -> None:
    for path in ("/admin", "/ADMIN/x", "/admin//x", "/runtime/webhooks", "/Runtime/Webhooks/x"):
        assert is_of_the_host(path)
    for path in ("/", "/administrators", "/runtime/x", "/api/admin", "//admin"):
        assert not is_of_the_host(path)


def test_the_same_route_belongs_to_two_functions_only_with_different_methods() -> None:
    first = FunctionRoute("first", RouteTemplate("a/{b}"), ("GET", "POST"))
    check_route(FunctionRoute("second", RouteTemplate("A/{B}"), ("PUT",)), [first])
    check_route(FunctionRoute("second", RouteTemplate("a/{c}"), ()), [first])
    for methods in ((), ("POST",)):
        with pytest.raises(BindingError, match="that of the function first as well"):
            check_route(FunctionRoute("second", RouteTemplate("A/{B}"), methods), [first])


def test_a_function_whose_requests_another_one_gets_is_named() -> None:
    routes = [
        FunctionRoute("any", RouteTemplate("api/{*rest}"), ("GET",)),
        FunctionRoute("item", RouteTemplate("api/items/{id}"), ("POST",)),
        FunctionRoute("number", RouteTemplate("api/items/{id:int}.json"), ("POST",)),
        FunctionRoute("put", RouteTemplate("api/items/list"), ("PUT",)),
        FunctionRoute("zoo", RouteTemplate("api/{*rest:int}"), ("POST",)),
    ]
    sentences = list(shadowing(routes))
    assert len(sentences) == 1
    assert sentences[0].startswith("The function item (api/items/{id}) gets the requests of the function number (")
