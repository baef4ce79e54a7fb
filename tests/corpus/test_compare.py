from __future__ import annotations

from typing import Any

from tests.corpus.compare import Comparison, compare, normalised
from tests.corpus.report import Unsupported, failures, page
from tests.corpus.run import Server

NOTHING: dict[str, Any] = {"tools": [], "prompts": [], "resources": [], "templates": [], "calls": [], "unknown": []}


def offering(**schema: Any) -> dict[str, Any]:
    tool = {"name": "add", "description": "Add numbers.", "inputSchema": {"type": "object", **schema}}
    return {**NOTHING, "tools": [tool]}


def reasons(comparison: Comparison) -> set[str]:
    return {reason for difference in comparison.differences for reason in difference.reasons}


def called(theirs: dict[str, Any], ours: dict[str, Any], **options: Any) -> Comparison:
    calls = [{"tool": "add", "arguments": {}}]
    accepting = {**NOTHING, "unknown": [False]}
    return compare({**accepting, "calls": [theirs]}, {**accepting, "calls": [ours]}, calls, **options)


def text(text: str, **members: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **members}


def test_equal_servers_have_no_differences() -> None:
    comparison = compare(offering(), offering())
    assert comparison.differences == []
    assert comparison.counts["tools same"] == comparison.counts["arguments same"] == 1


def test_a_refusal_of_unknown_arguments_is_deliberate_and_accepting_them_is_not() -> None:
    calls = [{"tool": "add", "arguments": {}}]
    accepting, refusing = ({**NOTHING, "calls": [text("5")], "unknown": [refuses]} for refuses in (False, True))
    assert reasons(compare(accepting, refusing, calls)) == {"unknown argument"}
    assert failures(compare(refusing, accepting, calls)) == ["call add with an unknown argument: True; funcmcp: False"]
    assert compare(refusing, refusing, calls).differences == []


def test_a_missing_tool_is_a_failure() -> None:
    assert failures(compare(offering(), NOTHING)) == ["tool add: absent"]


def test_a_tool_that_only_funcmcp_has_is_a_failure() -> None:
    assert failures(compare(NOTHING, offering())) == ["tool add: only on funcmcp"]


def test_a_missing_word_is_a_failure_where_many_are_missing() -> None:
    ours = offering()
    ours["tools"][0]["description"] = "Add."
    assert failures(compare(offering(), ours)) == ["tool add: missing words: numbers"]


def test_words_of_an_argument_may_move_from_the_docstring_to_its_schema() -> None:
    theirs, ours = offering(), offering(properties={"a": {"description": "One of them."}})
    theirs["tools"][0]["description"] = "Add numbers.\n\nArgs:\n    a (int): One of them."
    comparison = compare(theirs, ours)
    assert comparison.missing_words == {}


def test_another_type_of_an_argument_is_a_failure() -> None:
    comparison = compare(
        offering(properties={"a": {"type": "integer"}}), offering(properties={"a": {"type": "number"}})
    )
    assert len(failures(comparison)) == 1
    assert comparison.counts["arguments same"] == 0


def test_an_argument_that_may_be_null_is_a_deliberate_difference() -> None:
    nullable = {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    comparison = compare(offering(properties={"a": nullable}), offering(properties={"a": {"type": "integer"}}))
    assert failures(comparison) == []
    assert reasons(comparison) == {"nullable"}


def test_null_must_stay_in_a_list_and_beside_a_default() -> None:
    nullable = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    for theirs, ours in (
        ({"type": "array", "items": nullable}, {"type": "array", "items": {"type": "integer"}}),
        ({**nullable, "default": 5}, {"type": "integer", "default": 5}),
    ):
        assert failures(compare(offering(properties={"a": theirs}), offering(properties={"a": ours})))


def test_a_nullable_argument_that_becomes_another_type_is_a_failure() -> None:
    nullable = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert failures(compare(offering(properties={"a": nullable}), offering(properties={"a": {"type": "string"}})))


def test_a_required_argument_that_is_not_nullable_must_stay_required() -> None:
    properties = {"a": {"type": "integer"}}
    assert failures(compare(offering(properties=properties, required=["a"]), offering(properties=properties)))


def test_references_and_titles_make_no_difference() -> None:
    definitions = {"Point": {"title": "Point", "type": "object", "properties": {"title": {"type": "string"}}}}
    schema = {"type": "object", "properties": {"p": {"$ref": "#/$defs/Point", "title": "P"}}, "$defs": definitions}
    inner = {"type": "object", "properties": {"title": {"type": "string"}}}
    assert normalised(schema) == {"type": "object", "properties": {"p": inner}}


def test_a_recursive_reference_ends() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    assert normalised({"$ref": "#/$defs/Node", "$defs": {"Node": node}})["properties"]["next"] == {"recursive": True}


def test_another_result_is_a_failure() -> None:
    assert failures(called(text("3"), text("4")))
    assert failures(called(text("3"), text("3", isError=True)))
    assert failures(called(text("{}", structuredContent={"a": 1}), text("{}", structuredContent={"a": 2})))


def test_json_of_another_layout_is_the_same_but_for_what_varies() -> None:
    assert failures(called(text('{"a": 1, "ms": 2}'), text('{"a":1,"ms":3}'), varies=["ms"])) == []


def test_errors_of_arguments_may_be_worded_differently_and_other_errors_may_not() -> None:
    theirs = text("1 validation error for addArguments\na\n  Field required", isError=True)
    assert reasons(called(theirs, text("a: is required", isError=True))) == {"error wording"}
    prefixed = text("Error executing tool add: too large", isError=True)
    assert reasons(called(prefixed, text("too large", isError=True))) == {"error prefix"}
    assert failures(called(prefixed, text("The tool failed.", isError=True)))


def test_the_page_counts_each_server_once_and_names_those_that_do_not_run() -> None:
    rows: list[tuple[Server, Comparison | Unsupported | str]] = [
        (Server("a==1", "fastmcp 2", {}), compare(offering(), offering())),
        (Server("a==1", "fastmcp 4", {}), compare(offering(), NOTHING)),
        (Server("b==1", "mcp 1", {}), compare(offering(), offering())),
        (Server("c==1", "mcp 2", {}), Unsupported("It needs more.")),
        (Server("d==1", "low-level 1", {}), compare(offering(), offering())),
    ]
    written = page(rows)
    assert "\n1 of 3 servers of FastMCP and the official SDK's high-level API run (33 %). The others:\n" in written
    assert "\n- c: It needs more.\n" in written
    assert "\n| c | 1 | mcp 2 | | | | | | | | | does not run |\n" in written
    assert failures(Unsupported("It needs more.")) == []


def test_a_result_of_an_object_in_another_object_has_a_reason() -> None:
    theirs = {**NOTHING, "tools": [{**offering()["tools"][0], "outputSchema": WRAPPED}]}
    ours = {**NOTHING, "tools": [{**offering()["tools"][0], "outputSchema": {"type": "object"}}]}
    assert reasons(compare(theirs, ours)) == {"bare object"}
    wrapped = text('{"a":1}', structuredContent={"result": {"a": 1}})
    assert reasons(called(wrapped, text('{"a":1}', structuredContent={"a": 1}))) == {"bare object"}
    assert failures(called(wrapped, text('{"a":1}', structuredContent={"a": 2})))


WRAPPED = {"type": "object", "properties": {"result": {"type": "object"}}, "required": ["result"]}
