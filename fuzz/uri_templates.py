"""URI templates: what a URI says by a template, said again with every character escaped, is the same."""

from __future__ import annotations

import re

from funcmcp._protocol.uri_template import MAX_URI, InvalidTemplateError, UnsafeValueError, URITemplate, Values

_VARIABLE = re.compile(r"\{([+?&/]?)([^{}]*)\}")
_IN_ESCAPES = frozenset("%0123456789ABCDEF")


def check(data: bytes) -> None:
    """Take the first line as a template and the second as a URI."""
    first, _, second = data.decode("utf-8", "replace").partition("\n")
    try:
        template = URITemplate(first)
    except InvalidTemplateError:
        return
    try:
        values = template.match(second)
    except UnsafeValueError:
        return
    if values is None:
        return
    assert set(values) <= set(template.variables)
    assert set(template.variables) - set(values) <= set(template.optional)
    for name, value in values.items():
        assert isinstance(value, list) == (name in template.exploded or name in template.repeated)
        for text in [value] if isinstance(value, str) else value:
            _check_text(text)
    escapes = sum(text.count("%") for value in values.values() for text in value)
    assert escapes <= second.count("%25"), "an escape was split"
    if not _is_ambiguous(first):
        again = expand(first, values)
        assert len(again) > MAX_URI or template.match(again) == values, again


def _check_text(text: str) -> None:
    assert "\0" not in text
    assert "\\" not in text
    assert not text.startswith("/")
    assert ".." not in text.split("/")


def _is_ambiguous(template: str) -> bool:
    """Return whether an escape can match a part of the template behind its first variable."""
    behind = _VARIABLE.sub("\n", template).partition("\n")[2]
    return not _IN_ESCAPES.isdisjoint(behind)


def expand(template: str, values: Values) -> str:
    """Return the URI with these values."""
    return _VARIABLE.sub(lambda match: _expanded(match[1], match[2], values), template)


def _expanded(operator: str, names: str, values: Values) -> str:
    variables = {name.rstrip("*"): name.rstrip("*").replace("-", "_") for name in names.split(",")}
    chosen = {name: _texts(values[variable]) for name, variable in variables.items() if variable in values}
    if operator in {"?", "&"}:
        pairs = [f"{name}={text}" for name, texts in chosen.items() for text in texts]
        return operator + "&".join(pairs) if pairs else ""
    before = "/" if operator == "/" else ""
    return "".join(before + "/".join(texts) for texts in chosen.values())


def _texts(value: str | list[str]) -> list[str]:
    return [_escaped(text) for text in ([value] if isinstance(value, str) else value)]


def _escaped(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())
