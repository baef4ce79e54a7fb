"""What rules are checked on: a server's list of tools, and each of its features."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from funcmcp_cli.client_rules.schema_parts import SchemaPart, parts_of
from funcmcp_cli.json_values import as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from funcmcp._server.catalog.features import LeftOut

Kind: TypeAlias = Literal["server", "tool", "resource", "prompt"]

_OTHER_KINDS: tuple[tuple[str, Kind, str], ...] = (
    ("resources", "resource", "uri"),
    ("prompts", "prompt", "name"),
)
"""By member of a description: the kind of its features, and the member that identifies one."""


@dataclass(frozen=True)
class Subject:
    """A feature, or the server with all its features.

    Attributes:
        kind: What it is.
        key: The feature's name or URI. The server's name.
        definition: The feature as clients get it. The result of `inspect_server` for a server.
        server_name: The server's name.
        left_out: What the generated schemas of a tool do not say. Empty if that is not known.
        results: The results of calls of a tool. Empty if none was called.
        has_structure: Whether the results of a tool can have structured content. True if that is not known.
    """

    kind: Kind
    key: str
    definition: Mapping[str, Any]
    server_name: str
    left_out: Sequence[LeftOut] = field(default=())
    results: Sequence[Mapping[str, Any]] = field(default=())
    has_structure: bool = True

    @cached_property
    def input_parts(self) -> list[SchemaPart]:
        """The parts of a tool's input schema."""
        return parts_of(self.definition.get("inputSchema"))

    @cached_property
    def output_parts(self) -> list[SchemaPart]:
        """The parts of a tool's output schema. Empty if it has none."""
        return parts_of(self.definition["outputSchema"]) if "outputSchema" in self.definition else []


def subjects_of(facts: Mapping[str, Any], left_out: Mapping[str, Sequence[LeftOut]]) -> Iterator[Subject]:
    """Yield a server and its features.

    Args:
        facts: The result of `inspect_server`.
        left_out: By name of a tool, what its generated schemas do not say.
    """
    server_name = str(as_object(facts.get("server")).get("name", ""))
    yield Subject("server", server_name, facts, server_name)
    without_structure = as_list(facts.get("withoutStructure"))
    for definition in map(as_object, as_list(facts.get("tools"))):
        name = str(definition.get("name"))
        yield Subject(
            "tool",
            name,
            definition,
            server_name,
            left_out.get(name, ()),
            _results_of(facts, name),
            has_structure=name not in without_structure,
        )
    for member, kind, key in _OTHER_KINDS:
        for definition in map(as_object, as_list(facts.get(member))):
            yield Subject(kind, str(definition.get(key)), definition, server_name)


def _results_of(facts: Mapping[str, Any], tool: str) -> list[Mapping[str, Any]]:
    calls = [call for call in map(as_object, as_list(facts.get("calls"))) if call.get("tool") == tool]
    return [call["result"] for call in calls if isinstance(call.get("result"), dict)]
