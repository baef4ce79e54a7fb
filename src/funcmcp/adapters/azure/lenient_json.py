"""host.json and local.settings.json as the functions host reads them: comments, trailing commas, names in any case.

Source: Azure Functions host, HostJsonFileConfigurationSource, which reads with Newtonsoft.Json into a configuration
whose keys have no case.
"""

from __future__ import annotations

import json
import re
from typing import Any

# Both match strings, too, so that nothing in a string counts.
_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])', re.DOTALL)
_VISIBLE = re.compile(r"\S")


def parse(text: str) -> Any:
    """Return the value of a text of JSON with comments and trailing commas.

    Raises:
        ValueError: The text is not JSON, or is nested too deeply; the message says which, and where.
    """
    for pattern in (_COMMENT, _TRAILING_COMMA):
        text = pattern.sub(_blank, text)
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def at(document: Any, *keys: str) -> Any:
    """Return the value at a path of keys in a JSON document, compared without case; None if it is missing."""
    for key in keys:
        members = {name.lower(): value for name, value in document.items()} if isinstance(document, dict) else {}
        document = members.get(key.lower())
    return document


def _blank(match: re.Match[str]) -> str:
    """Return a string as it is and anything else as spaces, so that errors name the right line and column."""
    return match[0] if match[0].startswith('"') else _VISIBLE.sub(" ", match[0])
