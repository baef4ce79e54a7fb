"""URI templates, read backwards."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from funcmcp._protocol.uri_template import MAX_URI, InvalidTemplateError, UnsafeValueError, URITemplate

if TYPE_CHECKING:
    from funcmcp._protocol.uri_template import Values


def match(template: str, uri: str) -> Values | None:
    return URITemplate(template).match(uri)


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("menu://today", "menu://today", {}),
        ("menu://{a}", "menu://pizza", {"a": "pizza"}),
        ("menu://{a}/{b}", "menu://x/y", {"a": "x", "b": "y"}),
        ("menu://{a}/items", "menu://x/items", {"a": "x"}),
        ("menu://{a}", "menu://caf%C3%A9%20au%20lait", {"a": "café au lait"}),
        ("menu://{a}", "menu://a%2Fb", {"a": "a/b"}),
        ("menu://{a}", "menu://%252e", {"a": "%2e"}),
        ("menu://{a}", "menu://é", {"a": "é"}),
        ("menu://{+a}", "menu://x/y?z#w", {"a": "x/y?z#w"}),
        ("menu://{a*}", "menu://x/y/z", {"a": ["x", "y", "z"]}),
        ("menu://{a*}", "menu://x%2Fy/z", {"a": ["x/y", "z"]}),
        ("menu://{a*}", "menu://x//z", {"a": ["x", "", "z"]}),
        ("menu:{a}", "menu:x", {"a": "x"}),
        ("menu://a{?q,r}", "menu://a", {}),
        ("menu://a{?q,r}", "menu://a?", {}),
        ("menu://a{?q,r}", "menu://a?r=1&q=2", {"q": "2", "r": "1"}),
        ("menu://a{?q}", "menu://a?&q=&", {"q": ""}),
        ("menu://a{?q}", "menu://a?q", {"q": ""}),
        ("menu://a{?q}", "menu://a?q=a+b%2Bc=d?e", {"q": "a b+c=d?e"}),
        ("menu://{a}{?q}", "menu://x?q=1", {"a": "x", "q": "1"}),
    ],
)
def test_a_uri_gives_the_decoded_values_of_its_template(template: str, uri: str, values: Values) -> None:
    assert match(template, uri) == values


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("x://{a}.txt", "x://b.txt.txt", {"a": "b.txt"}),
        ("x://{a}-{b}", "x://1-2-3", {"a": "1-2", "b": "3"}),
        ("x://{a}-{b}", "x://--x", {"a": "-", "b": "x"}),
        ("x://{a}/b", "x://b/b", {"a": "b"}),
        ("x://{+p}/{b}/{c}", "x://1/2/3/4", {"p": "1/2", "b": "3", "c": "4"}),
        ("x://{p*}/{b}/{c}.md", "x://1/2/3/4.md", {"p": ["1", "2"], "b": "3", "c": "4"}),
        ("x://{a}/{+p}/{b}", "x://1/2/3/4", {"a": "1", "p": "2/3", "b": "4"}),
        ("x://{o*}/blob/{p*}", "x://1/2/blob/3/blob/4", {"o": ["1", "2", "blob", "3"], "p": ["4"]}),
        ("x://{+p}/edit", "x://edit/edit/edit", {"p": "edit/edit"}),
        ("x://{+p}--{b}", "x://1---", {"p": "1", "b": "-"}),
    ],
)
def test_a_uri_that_several_values_explain_has_one_meaning(template: str, uri: str, values: Values) -> None:
    assert match(template, uri) == values


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("x://{a}.{b}", "x://archive.tar.gz", ("archive.tar", "gz")),
        ("x://{a}--{b}", "x://x---y", ("x-", "y")),
        ("x://{a}.{b}.{c}", "x://1.2.3.4.5", ("1.2.3", "4", "5")),
        ("x://x-{a}-{b}-y", "x://x-1-2-3-y", ("1-2", "3")),
        ("x://{a}.{b}/{c}", "x://x.y.z/w", ("x.y", "z", "w")),
        ("x://{a}/{b}.{c}", "x://q/x.y.z", ("q", "x.y", "z")),
        ("x://{a}.{b}/{c*}", "x://x.y.z/w/v", ("x.y", "z", ["w", "v"])),
        ("x://{a}.{b}-{c*}", "x://x.y-z-w", ("x", "y-z", ["w"])),
        ("x://{a}.{b}-{c*}", "x://x.y-z/q-w", ("x", "y", ["z", "q-w"])),
        ("x://{c*}/{a}.{b}", "x://d/x.y.z", (["d"], "x.y", "z")),
        ("x://{a*}.{b}", "x://p/archive.tar.gz", (["p", "archive.tar"], "gz")),
        ("x://{a}.{b}/{c}-{+d}", "x://x.y.z/u-v-w/q", ("x.y", "z", "u-v", "w/q")),
    ],
)
def test_two_variables_in_a_segment_split_at_the_last_separator(
    template: str, uri: str, values: tuple[object, ...]
) -> None:
    """FastMCP 4.2.3 does the same; the official SDK 2.3.0 has neither ``{a*}`` nor another result."""
    matched = match(template, uri)
    assert matched is not None
    assert tuple(matched.values()) == values


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("doc://a/{x}", "doc://a/1#s", {"x": "1"}),
        ("doc://a/{x}", "doc://a/1?y=1", {"x": "1"}),
        ("doc://a/{x*}", "doc://a/1/2?y=1#s", {"x": ["1", "2"]}),
        ("doc://a/{x}", "DOC://a/1", {"x": "1"}),
        ("DOC://a/{x}", "doc://a/1", {"x": "1"}),
        ("doc://a/{x}", "doc://A/1", None),
        ("doc://a{?q}", "doc://a?q=1&other=2#s", {"q": "1"}),
        ("doc://a{?q}", "doc://a?Q=1", {}),
        ("doc://a{?q}", "doc://a?=1", {}),
        ("doc://a{?q}", "doc://a#s?q=1", {}),
        ("doc://a{?q}", "doc://a?q=1&q=2", {"q": "1"}),
        ("doc://{a}?fixed=1", "doc://x?fixed=1", {"a": "x"}),
        ("doc://{a}?fixed=1", "doc://x?fixed=1&other=2", None),
        ("doc://{+a}", "doc://x/y?q=1#s", {"a": "x/y?q=1#s"}),
        ("doc://{+a}{?q}", "doc://x#y?q=1#s", {"a": "x#y", "q": "1"}),
    ],
)
def test_a_scheme_has_any_case_and_what_the_template_lacks_is_left_out(template: str, uri: str, values: Values) -> None:
    assert match(template, uri) == values


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("menu://today", "menu://today/"),
        ("menu://today", "menu://toda"),
        ("menu://{a}", "menu://"),
        ("menu://{a}", "menu://x/y"),
        ("menu://{a}", " menu://x"),
        ("menu://{a}", ""),
        ("menu://{a}/b", "menu:///b"),
        ("menu://{a}/b", "menu://b"),
        ("menu://{a}/{b}/{c}", "menu://x/y"),
        ("menu://{a*}", "menu://"),
        ("menu://{+a}", "menu://"),
        ("menu://{+a}/{b}/{c}", "menu://x/y"),
        ("menu://{+a}/{b}/{c}", "menu://x//z"),
        ("x://ab{a}bc", "x://abc"),
        ("menu://{a}", "menu://%"),
        ("menu://{a}", "menu://%2"),
        ("menu://{a}4{b}", "menu://%41b"),
        ("menu://{a}", "menu://%zz"),
        ("menu://{a}", "menu://%ff"),
        ("menu://{a}", "menu://%ed%a0%80"),
        ("menu://{a*}", "menu://x/%ff"),
        ("menu://a{?q}", "menu://a?q=%ff"),
        ("menu://a{?q}", "menu://b?q=1"),
    ],
)
def test_a_uri_that_the_template_does_not_describe_gives_nothing(template: str, uri: str) -> None:
    assert match(template, uri) is None


@pytest.mark.parametrize("template", ["file://{a}", "file://{+a}", "file://{a*}", "file://x{?a}"])
@pytest.mark.parametrize(
    "value",
    [
        "..",
        "%2e%2e",
        ".%2E",
        "..%2Fetc",
        "a%2F..%2Fb",
        "%2Fetc%2Fpasswd",
        "C:",
        "C:secret",
        "c%3A%2Fx",
        "a%00b",
        "%00",
        "a%5Cb",
        "a\\b",
    ],
)
def test_a_value_that_leads_out_of_where_it_belongs_is_refused(template: str, value: str) -> None:
    uri = f"file://x?a={value}" if "?" in template else f"file://{value}"
    with pytest.raises(UnsafeValueError, match="not allowed"):
        match(template, uri)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("file://{+a}", "file:///etc/passwd"),
        ("file://docs/{a*}", "file://docs//etc/passwd"),
        ("file://docs/{a*}", "file://docs/a/../b"),
        ("file://docs/{a*}", "file://docs/a/C:/b"),
        ("file://docs/{+a}", "file://docs/a/.."),
        ("file://docs/{+a}/{b}", "file://docs/../x/y"),
        ("file://{dir}/.{name}", "file://d/.."),
        ("file://{dir}/.{name}", "file://d/.%2e"),
        ("file://{dir}/{name}.", "file://d/.."),
    ],
)
def test_a_path_of_several_segments_is_refused_as_a_whole(template: str, uri: str) -> None:
    with pytest.raises(UnsafeValueError):
        match(template, uri)


@pytest.mark.parametrize("template", ["menu://{a}", "menu://{+a}", "menu://x{?a}", "menu://{a*}", "filed://{a}"])
def test_a_letter_and_a_colon_are_a_drive_in_files_only(template: str) -> None:
    def uri(value: str) -> str:
        return template.partition(":")[0] + ("://x?a=" if "?" in template else "://") + value

    assert match(template, uri("a:b")) == {"a": ["a:b"] if "*" in template else "a:b"}
    for value in ("C:", "c%3A%2Fx", "c%3A%5Cx"):
        with pytest.raises(UnsafeValueError):
            match(template, uri(value))


def test_the_fragment_of_a_uri_is_not_part_of_a_query() -> None:
    assert match("menu://a{?q,r}", "menu://a?q=1#top") == {"q": "1"}
    assert match("menu://a{?q,r}", "menu://a?q=1#r=2&q=3") == {"q": "1"}
    assert match("menu://a{?q,r}", "menu://a?q=1%23top") == {"q": "1#top"}


@pytest.mark.parametrize("value", ["...", "a..b", "..a", "~", "ab:c", "1:b", "ab:/c", "%252e%252e", "."])
def test_a_harmless_value_is_taken(value: str) -> None:
    assert match("file://{+a}", f"file://{value}") is not None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "scheme"),
        ("today", "scheme"),
        ("//today", "scheme"),
        ("{scheme}://today", "scheme"),
        ("1menu://today", "scheme"),
        ("menu://{a}{b}", "without text between"),
        ("menu://{a}{+b}", "without text between"),
        ("menu://{a}/{a}", "twice"),
        ("menu://{a}{?a}", "twice"),
        ("menu://x{?a,a}", "twice"),
        ("menu://{a,b}", "{a}/{b}"),
        ("menu://x{?a**}", "not supported"),
        ("menu://x?a=1{?b}", "in its text"),
        ("menu://{}", "not supported"),
        ("menu://{a", "not supported"),
        ("menu://a}", "not supported"),
        ("menu://{#a}", "not supported"),
        ("menu://{.a}", "not supported"),
        ("menu://{a:3}", "not supported"),
        ("menu://{a b}", "not supported"),
        ("menu://x{?a,}", "not supported"),
        ("menu://x{?a,,b}", "not supported"),
        ("menu://x{?a,1b}", "not supported"),
        ("menu://{{a}}", "not supported"),
    ],
)
def test_a_template_that_cannot_be_matched_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(InvalidTemplateError) as caught:
        URITemplate(text)
    assert why in str(caught.value)


def test_a_template_tells_its_variables_in_their_order() -> None:
    template = URITemplate("menu://{b}/{+a}{?d,c}")
    assert template.variables == ("b", "a", "d", "c")
    assert template.optional == ("d", "c")
    assert template.text == "menu://{b}/{+a}{?d,c}"
    assert URITemplate("menu://today").optional == ()


def test_a_uri_longer_than_the_limit_matches_nothing() -> None:
    template = URITemplate("x://{a}")
    longest = "x://".ljust(MAX_URI, "a")
    assert template.match(longest) == {"a": longest[4:]}
    assert template.match(longest + "a") is None


class Counted(str):
    """A URI that counts how often it is searched."""

    __slots__ = ("looks",)
    looks: list[str]

    def find(self, *args: object) -> int:
        self.looks.append("find")
        return super().find(*args)  # type: ignore[arg-type]

    def rfind(self, *args: object) -> int:
        self.looks.append("rfind")
        return super().rfind(*args)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "template", ["x://{a}-{b}-{c}-{d}!", "x://{+a}/{b}/{c}/{d}!", "x://{a}/{b}/{c}/{d*}!", "x://{a*}/{+b}/{c*}!"]
)
@pytest.mark.parametrize("unit", ["-", "/", "a-", "a/", "-/", "a"])
def test_a_hostile_uri_is_looked_through_once_for_each_variable_at_most(template: str, unit: str) -> None:
    uri = Counted("x://" + unit * (4000 // len(unit)))
    for end in ("", "!"):
        hostile = Counted(uri + end)
        hostile.looks = []
        URITemplate(template)._split(hostile)
        assert bool(end) <= len(hostile.looks) <= 2 * template.count("{")


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("", {}),
        ("?tag=a", {"tag": ["a"]}),
        ("?tag=a&q=1&tag=b+c&tag=", {"tag": ["a", "b c", ""], "q": "1"}),
        ("?tag=&tag=x", {"tag": ["", "x"]}),
        ("?q=1&q=2", {"q": "1"}),
        ("?tags=a", {}),
    ],
)
def test_a_parameter_with_a_star_takes_all_values_of_its_name(query: str, values: object) -> None:
    assert match("menu://x{?q,tag*}", f"menu://x{query}") == values


@pytest.mark.parametrize("query", ["tag=a&tag=..", "tag=/etc/passwd", "tag=a&tag=%00"])
def test_each_of_several_values_is_looked_at_as_a_path(query: str) -> None:
    with pytest.raises(UnsafeValueError):
        match("menu://x{?tag*}", f"menu://x?{query}")


def test_a_template_of_another_resource_is_not_taken_for_an_unsafe_one() -> None:
    assert match("menu://{+path}{?q}", "menu://../x?q=%ff") is None


NAMES = st.lists(st.from_regex(r"[a-z_][a-z0-9_]{0,5}", fullmatch=True), min_size=1, max_size=4, unique=True)


def safe(text: str) -> bool:
    unsafe = "\0" in text or "\\" in text or text.startswith("/") or ".." in text.split("/")
    return not unsafe and text[1:2] != ":"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(safe)


@settings(deadline=None)
@given(NAMES, st.data())
def test_plain_values_come_back_as_they_were(names: list[str], data: st.DataObject) -> None:
    values = {name: data.draw(TEXTS) for name in names}
    template = "x://" + "/".join(f"{{{name}}}" for name in names)
    uri = "x://" + "/".join(quote(values[name], safe="") for name in names)
    assert match(template, uri) == values


@settings(deadline=None)
@given(NAMES, st.data())
def test_values_of_a_query_come_back_in_any_order(names: list[str], data: st.DataObject) -> None:
    given_names = data.draw(st.lists(st.sampled_from(names), unique=True))
    values = {name: data.draw(TEXTS) for name in given_names}
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in values.items())
    assert match(f"x://a{{?{','.join(names)}}}", f"x://a?{query}") == values


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=5), TEXTS, TEXTS)
def test_segments_come_back_as_they_were_whatever_stands_around_them(
    segments: list[str], before: str, after: str
) -> None:
    assume(safe("/".join(segments)))
    path = "/".join(quote(segment, safe="") for segment in segments)
    uri = f"x://{quote(before, safe='')}/{path}/{quote(after, safe='')}"
    assert match("x://{a}/{b*}/{c}", uri) == {"a": before, "b": segments, "c": after}


@settings(deadline=None)
@given(TEXTS)
def test_a_reserved_value_comes_back_with_its_slashes(value: str) -> None:
    assert match("x://{+a}", f"x://{quote(value, safe='/?#:')}") == {"a": value}


@settings(deadline=None)
@given(st.sampled_from(["x://{a}", "x://{+a}", "x://{a*}", "x://{a}/{b}", "x://{+a}.{b}", "x://a{?q,r}"]), st.text())
def test_any_text_is_matched_or_not_and_never_breaks_a_match(template: str, suffix: str) -> None:
    for uri in (suffix, "x://" + suffix, "x://a?" + suffix):
        try:
            values = match(template, uri)
        except UnsafeValueError:
            continue
        assert values is None or set(values) <= set(URITemplate(template).variables)
        for value in (values or {}).values():
            assert safe(value if isinstance(value, str) else "/".join(value)) or ":" in value


def test_a_template_names_the_variables_whose_values_are_lists() -> None:
    template = URITemplate("a://{x}/{y*}{?q,r*}")
    assert template.exploded == {"y"}
    assert template.repeated == {"r"}
    assert template.optional == ("q", "r")


@pytest.mark.parametrize(
    ("template", "values", "uri"),
    [
        ("data://{a}/{b}", {"a": "x/y", "b": 3}, "data://x%2Fy/3"),
        ("data://{+a}", {"a": "x/y?z #"}, "data://x/y?z%20#"),
        ("data://{a*}", {"a": ["x", "y/z"]}, "data://x/y%2Fz"),
        ("data://{a*}", {"a": "x/y"}, "data://x/y"),
        ("data://{a}/end{?b,c*}", {"a": "x", "b": "y z", "c": ["1", "2"]}, "data://x/end?b=y%20z&c=1&c=2"),
        ("data://{a}{?b}", {"a": "x", "b": None}, "data://x"),
    ],
)
def test_values_give_the_uri_that_matches_them(template: str, values: dict[str, object], uri: str) -> None:
    assert URITemplate(template).expand(values) == uri
    assert URITemplate(template).match(uri) is not None


def test_a_uri_needs_the_values_of_its_path() -> None:
    with pytest.raises(KeyError):
        URITemplate("data://{a}").expand({})


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("shelves://browse{/path*}", "shelves://browse/fiction/sci-fi", {"path": ["fiction", "sci-fi"]}),
        ("shelves://browse{/floor,name}", "shelves://browse/2/a%2Fb", {"floor": "2", "name": "a/b"}),
        ("shelves://{town}{/name}/books", "shelves://Oslo/new/books", {"town": "Oslo", "name": "new"}),
    ],
)
def test_values_of_a_path_expression_have_a_slash_before_them(
    template: str, uri: str, values: dict[str, str | list[str]]
) -> None:
    parsed = URITemplate(template)
    assert parsed.match(uri) == values
    assert parsed.expand(values) == uri
    assert parsed.match(uri.replace("/", "", 3)) is None


def test_a_path_expression_takes_no_segment_that_leads_upwards() -> None:
    with pytest.raises(UnsafeValueError):
        URITemplate("shelves://browse{/path*}").match("shelves://browse/fiction/..")


@pytest.mark.parametrize(
    ("values", "uri"), [({"tags": ["a", "b,c"]}, "data://x?tags=a,b%2Cc"), ({"tags": []}, "data://x"), ({}, "data://x")]
)
def test_a_list_of_the_query_is_joined_with_commas(values: dict[str, object], uri: str) -> None:
    assert URITemplate("data://x{?tags}", joined=["tags"]).expand(values) == uri
