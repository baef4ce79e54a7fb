"""Differences between the descriptions of two servers, as ``funcmcp inspect --json`` prints them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from funcmcp_cli.diff.differences import Difference, Level, changed, level_of, short
from funcmcp_cli.diff.schemas import argument_differences, result_differences
from funcmcp_cli.json_values import as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WORDS = ("title", "description")
_IGNORED = {"_meta", "resultType", "ttlMs", "cacheScope"}
"""Members of results that differ between revisions and are not part of the answer."""

_FEATURES = (
    ("tool", "tools", "name"),
    ("resource", "resources", "uri"),
    ("template", "resourceTemplates", "uriTemplate"),
    ("prompt", "prompts", "name"),
)
_SERVER_MEMBERS: dict[str, Level] = {"instructions": "wording", "revision": "compatible"}
_NEEDED_CAPABILITIES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("completions",), ("prompts", "resourceTemplates")),
    (("logging",), ("tools", "resources", "resourceTemplates", "prompts")),
    (("resources", "subscribe"), ("resources", "resourceTemplates")),
)
"""Capabilities of which clients use requests, and the lists of the features that these requests are about."""


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """Return the differences between two servers, in the order of their features."""
    result = _server_differences(old, new)
    for kind, member, key in _FEATURES:
        old_features = _by_key(old, member, key)
        new_features = _by_key(new, member, key)
        for name in dict.fromkeys([*old_features, *new_features]):
            subject = f"{kind} {name}"
            if name not in new_features:
                result.append(Difference("breaking", subject, "removed"))
            elif name not in old_features:
                result.append(Difference("compatible", subject, "new"))
            else:
                result += _feature_differences(kind, subject, old_features[name], new_features[name])
    result += _call_differences(old, new)
    return result


def _by_key(facts: Mapping[str, Any], member: str, key: str) -> dict[str, Mapping[str, Any]]:
    return {str(feature.get(key)): feature for feature in map(as_object, as_list(facts.get(member)))}


def _server_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    result = []
    for member in ("name", "title", "version", "description"):
        before, after = as_object(old.get("server")).get(member), as_object(new.get("server")).get(member)
        if before != after:
            result.append(Difference("wording", "server", changed(member, before, after)))
    for member, level in _SERVER_MEMBERS.items():
        if old.get(member) != new.get(member):
            result.append(Difference(level, "server", changed(member, old.get(member), new.get(member))))
    for path, members in _NEEDED_CAPABILITIES:
        name = ".".join(path)
        before, after = _at(old, path), _at(new, path)
        if after and not before:
            result.append(Difference("compatible", "server", f"the capability {name} is new"))
        is_used = any(old.get(member) for member in members)
        is_missing = before and not after and old.get("revision") == new.get("revision")  # others have other names
        if is_missing and is_used:
            result.append(Difference("breaking", "server", f"the capability {name} is missing"))
    return result


def _at(facts: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    """Return whether a server has a capability. An empty object counts."""
    value: Any = facts.get("capabilities")
    for name in path:
        value = as_object(value).get(name)
    return value is not None and value is not False


def _feature_differences(kind: str, subject: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    result = _member_differences("wording", subject, _WORDS, old, new)
    if kind == "tool":
        result += argument_differences(subject, old.get("inputSchema"), new.get("inputSchema"))
        result += result_differences(subject, old.get("outputSchema"), new.get("outputSchema"))
    if kind == "prompt":
        result += _prompt_differences(subject, old, new)
    if old.get("mimeType") != new.get("mimeType"):
        text = changed("mimeType", old.get("mimeType"), new.get("mimeType"))
        result.append(Difference(level_of(is_breaking=old.get("mimeType") is not None), subject, text))
    result += _annotation_differences(subject, old, new)
    before, after = _task_support(old), _task_support(new)
    if before != after:
        # A client that does not know tasks cannot call a tool that requires them, and one that uses them needs them.
        is_breaking = after in ("required", "forbidden")
        text = changed("taskSupport", before, after)
        result.append(Difference(level_of(is_breaking=is_breaking), subject, text))
    return result + _member_differences("compatible", subject, ("icons", "size", "_meta"), old, new)


def _member_differences(
    level: Level, subject: str, members: Sequence[str], old: Mapping[str, Any], new: Mapping[str, Any]
) -> list[Difference]:
    result = []
    for member in members:
        before, after = old.get(member), new.get(member)
        is_same_text = before in (None, "") and after in (None, "")
        if before != after and not is_same_text:
            result.append(Difference(level, subject, changed(member, before, after)))
    return result


def _task_support(feature: Mapping[str, Any]) -> Any:
    return as_object(feature.get("execution")).get("taskSupport", "forbidden")


def _annotation_differences(subject: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    before, after = as_object(old.get("annotations")), as_object(new.get("annotations"))
    result = []
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            level: Level = "wording" if name == "title" else "compatible"
            text = changed(f"annotation {name}", before.get(name), after.get(name))
            result.append(Difference(level, subject, text))
    return result


def _prompt_differences(subject: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    """Return the differences between the arguments of two prompts. They are compared as a tool's arguments of text."""
    return argument_differences(subject, _prompt_schema(old), _prompt_schema(new))


def _prompt_schema(prompt: Mapping[str, Any]) -> dict[str, Any]:
    arguments = [as_object(argument) for argument in as_list(prompt.get("arguments"))]
    properties = {}
    for argument in arguments:
        texts = {member: argument[member] for member in _WORDS if argument.get(member) is not None}
        properties[str(argument.get("name"))] = {"type": "string", **texts}
    required = [str(argument.get("name")) for argument in arguments if argument.get("required")]
    return {"type": "object", "properties": properties, "required": required}


def _call_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    result = []
    for before, after in zip(as_list(old.get("calls")), as_list(new.get("calls")), strict=False):
        kind = next((kind for kind in ("tool", "prompt", "resource") if kind in before), "tool")
        subject = f"call {before.get(kind)} {short(before.get('arguments', {}))}"
        result += _outcome_differences(subject, as_object(before), as_object(after))
    return result


def _outcome_differences(subject: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    if ("error" in old) != ("error" in new):
        text = changed("the outcome", old.get("error", "a result"), new.get("error", "a result"))
        return [Difference("breaking", subject, text)]
    if "error" in old:
        before, after = as_object(old["error"]), as_object(new["error"])
        if before.get("code") != after.get("code"):
            return [Difference("breaking", subject, changed("error code", before.get("code"), after.get("code")))]
        if before.get("message") != after.get("message"):
            text = changed("error message", before.get("message"), after.get("message"))
            return [Difference("wording", subject, text)]
        return []
    before, after = as_object(old.get("result")), as_object(new.get("result"))
    was_error, is_error = bool(before.get("isError")), bool(after.get("isError"))
    if was_error != is_error:
        return [Difference("breaking", subject, changed("isError", was_error, is_error))]
    level_of_words: Level = "wording" if is_error else "breaking"
    result = []
    for member in sorted({*before, *after} - _IGNORED - {"isError"}):
        first, second = before.get(member), after.get(member)
        if _comparable(first) == _comparable(second):
            continue
        level: Level = "compatible" if first is None else level_of_words
        result.append(Difference(level, subject, changed(member, first, second)))
    return result


def _comparable(value: Any) -> Any:
    """Return a value in which texts with JSON are replaced by the JSON, and members that vary are left out."""
    if isinstance(value, dict):
        return {name: _comparable(member) for name, member in value.items() if name != "_meta"}
    if isinstance(value, list):
        return [_comparable(element) for element in value]
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value
