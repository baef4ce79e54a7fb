"""Characters in definitions that a model reads and a person does not see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._text.visible import hidden_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LISTS = {"tools": ("tool", "name"), "resources": ("resource", "uri"), "prompts": ("prompt", "name")}
_LISTS["resourceTemplates"] = ("resource template", "uriTemplate")


def hidden_in_server(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each text with hidden characters in what `inspect_server` returns."""
    yield from hidden_in("The server", {"instructions": facts.get("instructions")})
    for member, (kind, key) in _LISTS.items():
        for definition in facts.get(member) or ():
            if isinstance(definition, dict):
                yield from hidden_in(f"The {kind} {definition.get(key)}", definition)
