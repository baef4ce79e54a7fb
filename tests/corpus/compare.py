"""Compares what a server offers on its own library with what it offers on funcmcp.

A difference either has one of the reasons below, which are the deliberate ones, or none.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

REASONS = {
    "nullable": "Null and a default of null are not sent for an argument that may be absent. Null is accepted.",
    "null default": "A default of null is not sent in an output schema.",
    "optional": "`T | None` without a default is not required.",
    "additionalProperties": "`additionalProperties: false` is not sent; unknown arguments are rejected all the same.",
    "unknown argument": "`FastMCP` refuses unknown arguments, as that of FastMCP does. That of the SDK 1.x drops them.",
    "text result": "A text has no output schema and no structured content: its text block has all of it.",
    "bare object": "A result of a `dict` without types is the structured content, where the SDK puts it into `result`.",
    "any result": "A result of any object has no output schema.",
    "any list": "A result of a list of anything has no output schema, because it may contain blocks.",
    "format": "A format that valid values can break, such as `date-time`, is not sent in an output schema.",
    "more structured": "An object is structured content as well, where the library sends its text alone.",
    "one block": "A list is one text block with a JSON array, where the library sends a block for each member.",
    "error wording": "Errors of arguments are in plain words, without the validator's name, links and the value.",
    "error prefix": "The text of an error has no `Error executing tool NAME:` before it, or FastMCP's words.",
    "hidden error": "An error whose text the author does not show has an id that is also in the server's log.",
    "hints": "Hints that the specification does not define are not sent.",
    "scheme": "A URI without a scheme is not a URI: registration fails.",
    "infinity": "Infinity and NaN, which are not JSON, are null in a text of JSON too.",
    "prompt description": "The description in a prompt's result does not repeat those of its arguments.",
}
"""Deliberate differences, by name."""
_NOISE = frozenset({"title", "description", "$schema", "$id"})
_MAPS = frozenset({"properties", "$defs", "patternProperties"})
_DATA = frozenset({"default", "enum", "const", "examples"})
_WORD = re.compile(r"\w+")
_HEADING = re.compile(r"^\s*(Args|Arguments|Parameters|Params):?\s*$", re.MULTILINE)
_JSON_PROMPT = re.compile(
    r"\s*Provide (as a JSON string|a value) matching the following (JSON )?schema:.*\Z", re.DOTALL
)
_TYPE = re.compile(r"^(\s*[-*]?\s*\w+ )\([^)\n]*\)(?=:)", re.MULTILINE)
_CONTEXT = re.compile(r"^\s*(ctx|context)( \([^)]*\))?:.*$", re.MULTILINE)
_ERROR_PREFIX = re.compile(r"\AError (executing|calling) tool '?[\w.-]+'?(: |\Z)")
_ARGUMENT_ERROR = re.compile(r"\d validation errors? for |Input validation error: ")
_HINTS = frozenset({"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"})
_UNSURE_FORMATS = frozenset({"date-time", "duration", "email", "ipv6", "regex", "time", "uri"})
_NO_SCHEME = re.compile(r"(?![A-Za-z][A-Za-z0-9+.-]*:)")


@dataclass(frozen=True)
class Difference:
    """Something that is not the same on both sides.

    Attributes:
        where: the feature and the member of it.
        reasons: names of `REASONS`; empty if it is not deliberate.
        detail: both sides, for the reader of the report.
    """

    where: str
    reasons: tuple[str, ...]
    detail: str


@dataclass
class Comparison:
    """What came of comparing one server.

    Attributes:
        counts: how many of each kind were compared, and how many are present or the same.
        differences: all differences.
        missing_words: words of descriptions that are missing, by tool.
    """

    counts: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    missing_words: dict[str, list[str]] = field(default_factory=dict)

    @property
    def unexplained(self) -> list[Difference]:
        """Differences that are not deliberate."""
        return [difference for difference in self.differences if not difference.reasons]

    def expect(self, kind: str, where: str, ours: Any, theirs: Any, *rules: str) -> None:
        """Count a comparison, and record a difference unless both sides are equal after the rules."""
        self.counts[kind] += 1
        if ours == theirs:
            self.counts[f"{kind} same"] += 1
            return
        self.differ(kind, where, _needed(ours, theirs, list(rules)), f"{_short(theirs)}; funcmcp: {_short(ours)}")

    def differ(self, kind: str, where: str, reasons: tuple[str, ...], detail: str) -> None:
        """Record a difference; count it as the same if it has a reason."""
        self.counts[f"{kind} same"] += bool(reasons)
        self.differences.append(Difference(where, reasons, detail))


def compare(
    theirs: dict[str, Any], ours: dict[str, Any], calls: Sequence[dict[str, Any]] = (), varies: Sequence[str] = ()
) -> Comparison:
    """Compare two observations of `observe`.

    Args:
        theirs: the server on its own library.
        ours: the server on funcmcp.
        calls: the calls whose results the observations have.
        varies: members of results that differ from one call to the next.
    """
    result = Comparison()
    only = ours.get("only", ["tools", "prompts", "resources", "templates", "calls"])
    for kind, key in (("tools", "name"), ("prompts", "name"), ("resources", "uri"), ("templates", "uriTemplate")):
        if kind not in only:
            continue
        present = {item[key]: item for item in ours[kind]}
        for item in theirs[kind]:
            result.counts[kind] += 1
            if item[key] not in present:
                where = f"{_SINGULAR[kind]} {item[key]}"
                no_scheme = _SINGULAR[kind] == "resource" and _NO_SCHEME.match(item[key])
                result.differ(kind, where, ("scheme",) if no_scheme else (), "absent")
                continue
            result.counts[f"{kind} same"] += 1
            _COMPARE[kind](result, item, present[item[key]])
        for name in present.keys() - {item[key] for item in theirs[kind]}:
            result.differences.append(Difference(f"{_SINGULAR[kind]} {name}", (), "only on funcmcp"))
    for call, their, our in zip(calls, theirs["calls"], ours["calls"], strict=True):
        _compare_call(result, call, _without(their, varies), _without(our, varies))
    tools = [call["tool"] for call in calls if "tool" in call]
    for tool, their_refusal, our_refusal in zip(tools, theirs["unknown"], ours["unknown"], strict=True):
        _compare_refusal(result, tool, theirs=their_refusal, ours=our_refusal)
    return result


def _compare_tool(result: Comparison, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    where = f"tool {theirs['name']}"
    _compare_words(result, where, theirs, ours)
    result.expect(
        "arguments",
        f"{where} inputSchema",
        normalised(ours["inputSchema"]),
        normalised(theirs["inputSchema"]),
        "optional",
        "nullable",
        "additionalProperties",
    )
    result.expect(
        "outputs",
        f"{where} outputSchema",
        _optional_schema(ours.get("outputSchema")),
        _optional_schema(theirs.get("outputSchema")),
        "text result",
        "bare object",
        "any result",
        "any list",
        "null default",
        "format",
        "additionalProperties",
    )
    result.expect("annotations", f"{where} annotations", _hints(ours), _hints(theirs), "hints")


def _hints(tool: dict[str, Any]) -> dict[str, Any]:
    return {hint: value for hint, value in tool.get("annotations", {}).items() if hint != "title"}


def _compare_prompt(result: Comparison, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    where = f"prompt {theirs['name']}"
    _compare_words(result, where, theirs, ours)
    result.expect("prompt arguments", f"{where} arguments", _required(ours), _required(theirs))


def _required(prompt: dict[str, Any]) -> dict[str, bool]:
    """Return whether each argument of a prompt is required, by name."""
    return {argument["name"]: argument.get("required", False) for argument in prompt.get("arguments", [])}


def _compare_resource(result: Comparison, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    where = f"resource {theirs.get('uri') or theirs['uriTemplate']}"
    _compare_words(result, where, theirs, ours)
    if "mimeType" in theirs:
        default = theirs["mimeType"] == "text/plain"  # what the libraries say where the author says nothing
        expected = ours.get("mimeType", "text/plain") if default else theirs["mimeType"]
        result.expect("media types", f"{where} mimeType", ours.get("mimeType", expected), expected)


_SINGULAR = {"tools": "tool", "prompts": "prompt", "resources": "resource", "templates": "resource"}
_COMPARE = {
    "tools": _compare_tool,
    "prompts": _compare_prompt,
    "resources": _compare_resource,
    "templates": _compare_resource,
}


def _compare_words(result: Comparison, where: str, theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    """Count how many words of the description and of the arguments' descriptions are anywhere in the feature."""
    expected = Counter(words(" ".join(_texts(theirs))))
    present = Counter(words(json.dumps(ours, ensure_ascii=False)))
    missing = expected - present
    result.counts["words"] += expected.total()
    result.counts["words same"] += expected.total() - missing.total()
    if missing:
        result.missing_words[where] = list(missing.elements())


def _texts(feature: dict[str, Any]) -> Iterator[str]:
    """Yield the author's words about a feature.

    Left out are headings and types of sections that describe arguments, lines about the context, and what FastMCP adds
    to the descriptions of prompts' arguments: the schema says it, or it is nothing for the client.
    """
    arguments = list(descriptions(feature.get("inputSchema", {})))
    text = feature.get("description", "")
    for change in (_HEADING, _CONTEXT):
        text = change.sub("", text)
    text = " ".join(_TYPE.sub(r"\1", text).split())
    for argument in arguments:  # what both the docstring and the parameter's annotation say counts once
        text = text.replace(" ".join(argument.split()).rstrip("."), " ", 1)
    yield text
    yield from arguments
    for argument in feature.get("arguments", []):
        yield _JSON_PROMPT.sub("", argument.get("description", ""))


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, escapes of JSON left out."""
    return _WORD.findall(re.sub(r"\\[nrt\"]", " ", text).casefold())


def descriptions(schema: Any) -> Iterator[str]:
    """Yield every description in a schema; not the property of that name."""
    if isinstance(schema, list):
        for member in schema:
            yield from descriptions(member)
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        if keyword == "description" and isinstance(value, str):
            yield value
        elif keyword in _MAPS:
            for member in value.values():
                yield from descriptions(member)
        elif keyword not in _DATA:
            yield from descriptions(value)


def normalised(schema: dict[str, Any]) -> Any:
    """Return a schema with references in place, without titles and descriptions, in one form for one meaning."""
    return _normal(schema, schema.get("$defs", {}), ())


def _normal(node: Any, definitions: dict[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_normal(member, definitions, inside) for member in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref", "")
    name = reference.rpartition("/")[2] if isinstance(reference, str) else ""
    if name and name in inside:
        return {"recursive": True}
    if name in definitions:
        merged = {**definitions[name], **{key: value for key, value in node.items() if key != "$ref"}}
        return _normal(merged, definitions, (*inside, name))
    result: dict[str, Any] = {}
    for keyword, value in node.items():
        if keyword in _NOISE or keyword == "$defs" or keyword.startswith("x-fastmcp-"):
            continue
        if keyword in _MAPS and isinstance(value, dict):
            result[keyword] = {name: _normal(member, definitions, inside) for name, member in value.items()}
        elif keyword in _DATA or keyword == "required":
            result[keyword] = value
        else:
            result[keyword] = _normal(value, definitions, inside)
    return _in_one_form(result)


def _in_one_form(schema: dict[str, Any]) -> dict[str, Any]:
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if "required" in schema:
        schema["required"] = sorted(schema["required"])
        if not schema["required"]:
            del schema["required"]
    if schema.get("additionalProperties") in (True, {}):
        del schema["additionalProperties"]
    if schema.get("items") == {}:
        del schema["items"]
    if schema.get("properties") == {}:
        del schema["properties"]
    return schema


def _optional_schema(schema: dict[str, Any] | None) -> Any:
    return None if schema is None else normalised(schema)


def _walked(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Any], Any]:
    """Return a function that applies a change to every schema in a schema, the inner ones first."""

    def walk(node: Any) -> Any:
        if isinstance(node, list):
            return [walk(member) for member in node]
        if not isinstance(node, dict):
            return node
        walked = {
            keyword: {name: walk(member) for name, member in value.items()}
            if keyword in _MAPS
            else (value if keyword in _DATA else walk(value))
            for keyword, value in node.items()
        }
        return change(walked)

    return walk


def _is_nullable(schema: Any) -> bool:
    return {"type": "null"} in schema.get("anyOf", []) or "null" in _listed(schema.get("type"))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _without_optional(schema: dict[str, Any]) -> dict[str, Any]:
    """Take properties that may be null out of `required`."""
    nullable = {name for name, member in schema.get("properties", {}).items() if _is_nullable(member)}
    required = [name for name in schema.get("required", []) if name not in nullable]
    remaining = {keyword: value for keyword, value in schema.items() if keyword != "required"}
    return {**remaining, "required": required} if required else remaining


def _without_optional_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop null from properties that may be absent and whose default, if any, is null. Drop such a default, too."""
    required = schema.get("required", [])
    if "properties" not in schema:
        return schema
    properties = {
        name: member if name in required or member.get("default") is not None else _without_null(member)
        for name, member in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    result = {keyword: value for keyword, value in schema.items() if keyword != "default"}
    members = [member for member in result.get("anyOf", []) if member != {"type": "null"}]
    if len(members) == 1:
        del result["anyOf"]
        return {**members[0], **result}
    if members:
        result["anyOf"] = members
    return result


def _without_closing(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("additionalProperties") is False:
        return {keyword: value for keyword, value in schema.items() if keyword != "additionalProperties"}
    return schema


def _without_text(schema: Any) -> Any:
    """Drop the output schema of a text."""
    properties = (schema or {}).get("properties", {})
    if list(properties) != ["result"]:
        return schema
    kinds = properties["result"].get("anyOf", [properties["result"]])
    return None if all(kind in ({"type": "string"}, {"type": "null"}) for kind in kinds) else schema


def _without_wrapper(schema: Any) -> Any:
    """Return the schema of any object for that of an object in ``result``."""
    wrapped = {"type": "object", "properties": {"result": {"type": "object"}}, "required": ["result"]}
    return {"type": "object"} if schema == wrapped else schema


def _without_any(schema: Any) -> Any:
    """Drop the output schema of any object."""
    return None if schema == {"type": "object"} else schema


def _without_any_list(schema: Any) -> Any:
    """Drop the output schema of a list of anything."""
    wrapped = {"type": "object", "properties": {"result": {"type": "array"}}, "required": ["result"]}
    return None if schema == wrapped else schema


def _without_format(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("format") in _UNSURE_FORMATS:
        return {keyword: value for keyword, value in schema.items() if keyword != "format"}
    return schema


def _without_null_default(schema: dict[str, Any]) -> dict[str, Any]:
    if "default" in schema and schema["default"] is None:
        return {keyword: value for keyword, value in schema.items() if keyword != "default"}
    return schema


def _without_other_hints(annotations: dict[str, Any]) -> dict[str, Any]:
    return {hint: value for hint, value in annotations.items() if hint in _HINTS}


_RULES: dict[str, Callable[[Any], Any]] = {
    "optional": _walked(_without_optional),
    "nullable": _walked(_without_optional_null),
    "additionalProperties": _walked(_without_closing),
    "text result": _without_text,
    "bare object": _without_wrapper,
    "any result": _without_any,
    "any list": _without_any_list,
    "null default": _walked(_without_null_default),
    "format": _walked(_without_format),
    "hints": _without_other_hints,
}
"""What each reason changes, on both sides, in the order in which they are applied."""


def _needed(ours: Any, theirs: Any, rules: list[str]) -> tuple[str, ...]:
    """Return the rules without which two schemas would differ; none if they differ with all of them."""
    if not _equal(ours, theirs, rules):
        return ()
    for rule in tuple(rules):
        fewer = [other for other in rules if other != rule]
        if _equal(ours, theirs, fewer):
            rules = fewer
    return tuple(rules)


def _equal(ours: Any, theirs: Any, rules: list[str]) -> bool:
    for rule in rules:
        ours, theirs = _RULES[rule](ours), _RULES[rule](theirs)
    return bool(ours == theirs)


def _compare_call(result: Comparison, call: dict[str, Any], theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    name = call.get("tool") or f"prompt {call['prompt']}"
    where = f"call {name} {json.dumps(call['arguments'])[:80]}"
    result.counts["calls"] += 1
    if theirs == ours:
        result.counts["calls same"] += 1
        return
    result.differ("calls", where, _call_reasons(theirs, ours), f"{_short(theirs)}; funcmcp: {_short(ours)}")


def _compare_refusal(result: Comparison, tool: str, *, theirs: bool, ours: bool) -> None:
    """Compare whether an unknown argument makes a call an error."""
    result.counts["unknown arguments"] += 1
    if theirs == ours:
        result.counts["unknown arguments same"] += 1
        return
    reasons = ("unknown argument",) if ours else ()
    result.differ("unknown arguments", f"call {tool} with an unknown argument", reasons, f"{theirs}; funcmcp: {ours}")


def _call_reasons(theirs: dict[str, Any], ours: dict[str, Any]) -> tuple[str, ...]:
    """Return why two results differ, or nothing if a part of the difference has no reason."""
    if "messages" in theirs:
        return ("prompt description",) if theirs["messages"] == ours.get("messages") else ()
    if theirs.get("isError") and ours.get("isError"):
        reason = _error_reason(_texts_of(theirs), _texts_of(ours))
        return (reason,) if reason else ()
    if theirs.get("isError") or ours.get("isError") or "content" not in theirs or "content" not in ours:
        return ()
    reasons = set()
    their_texts, our_texts = _decoded_texts(theirs), _decoded_texts(ours)
    if their_texts != our_texts:
        reason = _text_reason(their_texts, our_texts)
        if not reason:
            return ()
        reasons.add(reason)
    structured = [side.get("structuredContent") for side in (theirs, ours)]
    if structured[0] != structured[1]:
        reason = _structured_reason(*structured)
        if not reason:
            return ()
        reasons.add(reason)
    return tuple(sorted(reasons))


def _error_reason(theirs: str, ours: str) -> str | None:
    if _ARGUMENT_ERROR.search(theirs):
        return "error wording"
    bare = _ERROR_PREFIX.sub("", theirs)
    if bare in {ours, _ERROR_PREFIX.sub("", ours)}:
        return "error prefix"
    return None if bare else "hidden error"


def _text_reason(theirs: list[Any], ours: list[Any]) -> str | None:
    if ours == [theirs]:
        return "one block"
    return "infinity" if _finite(theirs) == ours else None


def _finite(value: Any) -> Any:
    """Return a value of JSON with null for numbers that JSON does not have."""
    return json.loads(json.dumps(value), parse_constant=lambda _: None)


def _structured_reason(theirs: Any, ours: Any) -> str | None:
    if theirs is None:
        return "more structured"
    if isinstance(ours, dict) and theirs == {"result": ours}:
        return "bare object"
    is_text = isinstance(theirs, dict) and list(theirs) == ["result"] and isinstance(theirs["result"], str | None)
    return "text result" if ours is None and is_text else None


def _texts_of(outcome: dict[str, Any]) -> str:
    return "\n".join(block.get("text", "") for block in outcome["content"])


def _decoded_texts(outcome: dict[str, Any]) -> list[Any]:
    """Return the content, with texts of JSON decoded."""
    return [_decoded(block["text"]) if block["type"] == "text" else block for block in outcome["content"]]


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _without(value: Any, varies: Sequence[str]) -> Any:
    """Return a result in one form: without what varies, in texts of JSON too, `resultType` and `isError: false`."""
    if isinstance(value, list):
        return [_without(member, varies) for member in value]
    if not isinstance(value, dict):
        return value
    result = {
        key: _without(member, varies)
        for key, member in value.items()
        if key not in varies and key != "resultType" and not (key == "isError" and member is False)
    }
    text = result.get("text")
    if isinstance(text, str) and not isinstance(_decoded(text), str | int | float):
        result["text"] = json.dumps(_without(_decoded(text), varies), ensure_ascii=False)
    return result


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 300 else f"{text[:300]}..."
