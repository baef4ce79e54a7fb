"""The form of each schema of a corpus: it shows values that the schema allows, and sends what it shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest

from tests.page.features import FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.page.browser import Browser

pytestmark = pytest.mark.slow("A browser goes through many pages.")

ROOT = Path(__file__).parents[2]
FILES = ROOT / "src" / "funcmcp" / "_page" / "files"
SCRIPT = "\n".join((FILES / name).read_text(encoding="utf-8") for name in ("elements.js", "markdown.js", "fields.js"))
MAX_DEPTH = 8
CORPUS = json.loads((ROOT / "tests" / "converters" / "corpus_tools.json").read_text(encoding="utf-8"))

AS_JSON = [
    "chroma-mcp 0.2.6 (mcp 1) chroma_create_collection",
    "chroma-mcp 0.2.6 (mcp 1) chroma_modify_collection",
    "chroma-mcp 0.2.6 (mcp 1) chroma_query_documents",
    "chroma-mcp 0.2.6 (mcp 1) chroma_get_documents",
    "office-powerpoint-mcp-server 2.0.7 (mcp 1) apply_picture_effects",
    "mcp-server-qdrant 0.8.1 (fastmcp 2) qdrant-store",
    "mcp-clickhouse 0.7.0 (fastmcp 4) run_query",
    "fields",
]
"""Tools with a field for JSON text: for objects whose schema names no members, and for a tree without end."""

PLAY = """
await page.setContent('<main></main><div id="announcement"></div>');
return await page.evaluate(({ source, cases }) => {
    const { makeField, newBudget, ABSENT } = new Function(`${source}; return { makeField, newBudget, ABSENT };`)();
    return cases.map(({ schema, values }) => {
        const place = { name: null, label: "Arguments", root: schema, required: true, depth: 0, budget: newBudget() };
        const field = makeField(schema, place);
        document.querySelector("main").replaceChildren(field.element);
        const shown = values.map((value) => {
            field.write(value);
            const problems = [];
            const sent = field.read(problems);
            return { sent: sent === ABSENT ? "absent" : sent, problems: problems.map(({ sentence }) => sentence) };
        });
        return { shown, asJSON: document.querySelectorAll("textarea.json").length };
    });
}, args);
"""


def schemas() -> dict[str, dict[str, Any]]:
    """Return the input schemas of the corpus, by server and tool."""
    tools = {f"{server} {tool['name']}": tool["inputSchema"] for server, tools in CORPUS.items() for tool in tools}
    return {**tools, "fields": FIELDS}


def values_of(schema: Any, root: dict[str, Any], depth: int = 0) -> list[Any]:
    """Return some values that may fit a schema: with and without optional members, and of each alternative."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return []
    if "$ref" in schema:
        node: Any = root
        for part in schema["$ref"].removeprefix("#").split("/")[1:]:
            node = node[part]
        return values_of(node, root, depth + 1)
    if "const" in schema or "enum" in schema:
        return list(schema["enum"]) if "enum" in schema else [schema["const"]]
    branches = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if branches and "properties" not in schema:
        return [value for branch in branches for value in values_of(branch, root, depth)]
    types = schema.get("type", "object" if "properties" in schema else "string")
    names = types if isinstance(types, list) else [types]
    return [value for name in names for value in _VALUES[name](schema, root, depth)]


def _arrays(schema: dict[str, Any], root: dict[str, Any], depth: int) -> list[Any]:
    items = values_of(schema.get("items", {"type": "string"}), root, depth + 1)[:2]
    return [items] if "minItems" in schema else [[], items]


def _text(schema: dict[str, Any], _root: dict[str, Any], _depth: int) -> list[Any]:
    return [_TEXTS.get(schema.get("format", ""), "any text"[: schema.get("maxLength", 100)])]


def _lowest(schema: dict[str, Any]) -> float:
    return float(schema.get("minimum", schema.get("exclusiveMinimum", 0)))


_TEXTS = {
    "date": "2027-03-04",
    "date-time": "2027-03-04T10:30:00Z",
    "time": "08:30:00Z",
    "duration": "P1DT2H",
    "uri": "https://example.com/a",
    "email": "ann@example.com",
    "uuid": "12345678-1234-5678-1234-567812345678",
}


def _objects(schema: dict[str, Any], root: dict[str, Any], depth: int) -> list[Any]:
    properties = schema.get("properties", {})
    if not properties and isinstance(schema.get("additionalProperties"), dict):
        return [{"key": value} for value in values_of(schema["additionalProperties"], root, depth + 1)[:1]]
    choices = {name: values_of(member, root, depth + 1) for name, member in properties.items()}
    required = {name: values[0] for name, values in choices.items() if name in schema.get("required", []) and values}
    single = [{**required, name: value} for name, values in choices.items() for value in values[:4]]
    return [required, *single, {name: values[0] for name, values in choices.items() if values}]


_VALUES: dict[str, Callable[[dict[str, Any], dict[str, Any], int], list[Any]]] = {
    "object": _objects,
    "array": _arrays,
    "string": _text,
    "integer": lambda schema, _root, _depth: [int(_lowest(schema)) + 1],
    "number": lambda schema, _root, _depth: [_lowest(schema) + 0.5],
    "boolean": lambda _schema, _root, _depth: [True, False],
    "null": lambda _schema, _root, _depth: [None],
}


def test_the_form_of_each_schema_sends_what_the_schema_allows(browser: Browser) -> None:
    cases: list[dict[str, Any]] = []
    for schema in schemas().values():
        is_valid = jsonschema_rs.validator_for(schema).is_valid
        cases.append({"schema": schema, "values": [value for value in values_of(schema, schema) if is_valid(value)]})
    assert sum(len(case["values"]) for case in cases) > 500
    results = browser.play(PLAY, {"source": SCRIPT, "cases": cases})
    wrong = []
    for name, case, result in zip(schemas(), cases, results, strict=True):
        is_valid = jsonschema_rs.validator_for(case["schema"]).is_valid
        for value, shown in zip(case["values"], result["shown"], strict=True):
            if shown["problems"] or not is_valid(shown["sent"]) or not has_all_of(shown["sent"], value):
                wrong.append((name, value, shown))
    assert wrong == []
    as_json = [name for name, result in zip(schemas(), results, strict=True) if result["asJSON"]]
    assert [name for name in as_json if schemas()[name]["properties"]] == AS_JSON


def has_all_of(sent: Any, value: Any) -> bool:
    """Return whether a value was sent. Defaults may be sent, too, and an empty list may not."""
    if isinstance(value, dict) and isinstance(sent, dict):
        return all(has_all_of(sent.get(name, []), member) for name, member in value.items())
    if isinstance(value, list) and isinstance(sent, list):
        return len(sent) == len(value) and all(map(has_all_of, sent, value))
    return bool(sent == value)


WHOLE_FORM = """
await page.setContent('<main></main><div id="announcement"></div>');
return await page.evaluate(({ source, schemas }) => {
    const { schemaForm } = new Function(`${source}; return { schemaForm };`)();
    return schemas.map((schema) => {
        const form = schemaForm(schema, "Arguments");
        document.querySelector("main").replaceChildren(form.element);
        return { sent: form.read(), text: form.element.textContent, parts: form.element.querySelectorAll("*").length };
    });
}, args);
"""


def of(**members: Any) -> dict[str, Any]:
    """Return the schema of an object."""
    return {"type": "object", "properties": members}


TEXT_OR_LIST = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
PERSON = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
EMPTY_TEXTS: dict[str, Any] = {
    "union": TEXT_OR_LIST | {"default": ""},
    "list": {"type": "array", "items": TEXT_OR_LIST, "default": [""]},
    "map": {"type": "object", "additionalProperties": {"type": "string"}, "default": {"": ""}},
    "person": PERSON | {"default": {"name": ""}},
    "number": {"type": ["integer", "string"], "default": ""},
    "plain": {"type": "string", "default": ""},
}


EMAIL = of(kind={"const": "email"}, address={"type": "string"}) | {"required": ["kind", "address"]}
SMS = of(kind={"const": "sms"}, phone={"type": "string"}) | {"required": ["kind", "phone"]}
UNIONS: list[dict[str, Any]] = [
    {"type": "object", "anyOf": [EMAIL, SMS]},
    {"type": "object", "oneOf": [{"$ref": "#/$defs/email"}, SMS], "$defs": {"email": EMAIL}},
    of(note={"type": "string"}) | {"required": ["note"], "oneOf": [EMAIL, SMS]},
]
CHOOSE = """
await page.setContent('<main></main><div id="announcement"></div>');
return await page.evaluate(({ source, schemas, value }) => {
    const { schemaForm } = new Function(`${source}; return { schemaForm };`)();
    return schemas.map((schema) => {
        const form = schemaForm(schema, "Arguments");
        document.querySelector("main").replaceChildren(form.element);
        const control = form.element.querySelector("select");
        const names = [...control?.options ?? []].map((option) => option.text);
        form.write(value);
        return { names, chosen: control?.selectedOptions[0].text, sent: form.read() };
    });
}, args);
"""


def test_a_union_of_objects_has_a_list_and_the_fields_of_the_chosen_one(browser: Browser) -> None:
    value = {"kind": "sms", "phone": "+47", "note": "urgent"}
    shown = browser.play(CHOOSE, {"source": SCRIPT, "schemas": UNIONS, "value": value})
    for schema, form in zip(UNIONS, shown, strict=True):
        assert (form["names"], form["chosen"]) == (["email", "sms"], "sms")
        assert form["sent"] == {name: value[name] for name in value if name != "note" or "properties" in schema}


def test_alternatives_without_members_leave_the_fields_as_they_are(browser: Browser) -> None:
    schema = of(a={"type": "string"}, b={"type": "string"})
    alternatives = schema | {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    (form,) = browser.play(CHOOSE, {"source": SCRIPT, "schemas": [alternatives], "value": {"b": "x"}})
    assert (form["names"], form["sent"]) == ([], {"b": "x"})


def test_defaults_that_are_empty_texts_are_sent_and_others_are_asked_for(browser: Browser) -> None:
    forms = [of(**EMPTY_TEXTS), PERSON]
    sent, asked = browser.play(WHOLE_FORM, {"source": SCRIPT, "schemas": forms})
    expected = {name: schema["default"] for name, schema in EMPTY_TEXTS.items()}
    assert sent["sent"] | {"plain": "", "number": ""} == expected  # the defaults of optional texts need not be sent
    assert asked["sent"] is None
    assert "Enter a value. To send an empty text, use Edit as JSON." in asked["text"]


def test_a_schema_without_a_form_and_a_large_one_show_a_sentence(browser: Browser) -> None:
    shared = {"enum": list(range(50_000))}
    row = {"type": "object", "properties": {"a": {"type": "string"}}}
    many = {f"p{number}": {"type": "string"} for number in range(6000)}
    json_only = [
        of(**many),
        of(a={"type": "array", "items": row, "default": [{}] * 6000}),
    ]
    with_form = [
        of(a={"$ref": "#/%"}, b={"allOf": [{"$ref": "#/properties/b"}]}),
        of(a=shared, b={"type": "array", "items": shared}),
        of(a={"anyOf": [{"$ref": "#/$defs/e"}] * 90}) | {"$defs": {"e": shared}},
        of(a={"anyOf": [{"$ref": "#/properties/a"}] * 90, "default": {}}),
    ]
    seen = browser.play(WHOLE_FORM, {"source": SCRIPT, "schemas": json_only + with_form})
    for form in seen:
        assert form["parts"] < 30_000
    for form in seen[: len(json_only)]:
        assert "It would have too many fields. Edit the values as JSON." in form["text"]
        assert form["sent"] == {}
    for form in seen[len(json_only) :]:
        assert "Edit as JSON" in form["text"]
    assert "The first 1,000 values are listed." in seen[len(json_only) + 1]["text"]
