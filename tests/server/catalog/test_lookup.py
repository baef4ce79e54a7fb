"""The features that requests name."""

from __future__ import annotations

from typing import Any

import pytest

from funcmcp._protocol.errors import InvalidParams, ResourceNotFound
from funcmcp._server.catalog.lookup import MAX_MATCHES, Lookup
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.catalog.visibility import visibility_rule
from tests.server.parts import prompt, resource, server, template, tool

CATALOG = server(
    tool("cook"), prompt("praise"), resource("menu://today"), template("menu://{day}"), template("menu://{other}")
).catalog
LOOKUP = Lookup(CATALOG)


def test_a_feature_is_found_by_its_exact_name() -> None:
    assert LOOKUP.tool({"name": "cook"})[0] is CATALOG.tools.get("cook")
    assert LOOKUP.prompt({"name": "praise"})[0] is CATALOG.prompts.get("praise")


@pytest.mark.parametrize("params", [{}, {"name": None}, {"name": 5}, {"name": ["cook"]}, {"name": "Cook"}])
def test_an_unknown_name_is_invalid_params(params: dict[str, Any]) -> None:
    for find in (LOOKUP.tool, LOOKUP.prompt):
        with pytest.raises(InvalidParams):
            find(params)


def test_a_very_long_name_is_not_repeated_whole() -> None:
    for find in (LOOKUP.tool, LOOKUP.prompt):
        with pytest.raises(InvalidParams) as caught:
            find({"name": "n" * 1000})
        assert len(caught.value.message) < 200


def test_a_hidden_resource_precedes_templates_too_until_it_is_removed() -> None:
    catalog = server(resource("menu://today"), template("menu://{day}")).catalog
    lookup = Lookup(catalog)
    catalog.set_visibility(visibility_rule({"menu://today"}, None, None, shows=False))
    for spelling in ("menu://today", "MENU://today", "Menu://today"):
        with pytest.raises(ResourceNotFound):
            lookup.readable({"uri": spelling})
    catalog.resources.remove("menu://today")
    assert lookup.readable({"uri": "menu://today"})[1] == {"day": "today"}


def test_a_resource_precedes_templates_and_a_template_those_after_it() -> None:
    assert LOOKUP.readable({"uri": "menu://today"}) == (CATALOG.resources.get("menu://today"), {})
    for _ in range(2):
        assert LOOKUP.readable({"uri": "menu://monday"}) == (CATALOG.templates.get("menu://{day}"), {"day": "monday"})


@pytest.mark.parametrize("uri", ["Menu://today", "menu://today", "MENU://today"])
def test_the_scheme_of_a_resource_may_have_any_case_in_the_decorator_and_in_requests(uri: str) -> None:
    catalog = server(resource("Menu://today")).catalog
    assert Lookup(catalog).reader_of(uri) == (catalog.resources.get("Menu://today"), {})


def test_uris_that_differ_only_in_the_case_of_the_scheme_are_duplicates() -> None:
    with pytest.raises(RegistrationError, match="which differs from 'Menu://today' too little"):
        server(resource("Menu://today"), resource("menu://today"))


@pytest.mark.parametrize("uri", ["menu://a/b", "other://today", ""])
def test_a_uri_that_nothing_reads_is_not_found(uri: str) -> None:
    with pytest.raises(ResourceNotFound):
        LOOKUP.reader_of(uri)


def test_a_uri_is_a_string() -> None:
    with pytest.raises(InvalidParams, match='"uri" must be a string'):
        LOOKUP.readable({"uri": 5})


def test_a_value_that_could_leave_its_place_is_refused() -> None:
    with pytest.raises(InvalidParams):
        LOOKUP.reader_of("menu://..")


def test_a_match_is_forgotten_when_templates_change() -> None:
    served = server(template("menu://{day}"))
    lookup = Lookup(served.catalog)
    assert lookup.reader_of("menu://monday")[0].key == "menu://{day}"
    served.catalog.templates.remove("menu://{day}")
    with pytest.raises(ResourceNotFound):
        lookup.reader_of("menu://monday")


def test_uris_that_clients_make_up_take_bounded_memory() -> None:
    lookup = Lookup(CATALOG)
    for number in range(3 * MAX_MATCHES):
        lookup.reader_of(f"menu://{number}")
    assert len(lookup._matches) <= MAX_MATCHES


@pytest.mark.parametrize(
    "reference",
    [
        None,
        "ref/prompt",
        {},
        {"type": "ref/tool"},
        {"type": ["ref/prompt"]},
        {"type": "ref/prompt", "name": "unknown"},
        {"type": "ref/resource"},
        {"type": "ref/resource", "uri": 5},
        {"type": "ref/resource", "uri": "menu://monday"},
    ],
)
def test_a_reference_that_names_nothing_is_invalid_params(reference: Any) -> None:
    with pytest.raises(InvalidParams):
        LOOKUP.completed({"ref": reference})


def test_a_reference_names_a_prompt_or_a_template() -> None:
    assert LOOKUP.completed({"ref": {"type": "ref/prompt", "name": "praise"}})[0].key == "praise"
    assert LOOKUP.completed({"ref": {"type": "ref/resource", "uri": "menu://{day}"}})[0].key == "menu://{day}"
