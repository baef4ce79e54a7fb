"""What a server's tools cost a model: ``funcmcp inspect --tokens``, and the warning of ``funcmcp doctor``.

Clients pass the name, the description and the input schema of each tool to their models, and most of them the
instructions of the server. Few pass output schemas, which are listed and not counted. Every model counts tokens in its
own way, and the tokenizers are large or need the network. So tokens are estimated from characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp import MCPServer, RegistrationError
from funcmcp._objects.mappings import only
from funcmcp._protocol.codec import encode
from funcmcp._serving.composition import runtime_of
from funcmcp_cli.output import write_json, write_line
from funcmcp_cli.show import print_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

CHARACTERS_PER_TOKEN = 4
MANY_TOKENS = 10_000
"""Tokens of a list above which doctor warns: a twentieth of a context of 200,000."""

_FOR_MODELS = frozenset({"name", "description", "inputSchema"})


class Cost(NamedTuple):
    """What one tool costs.

    Attributes:
        name: The tool's name.
        characters: The characters of what models get, as JSON.
        description: The characters of the description.
        input_schema: Those of the input schema.
        output_schema: Those of the output schema, which is not in *characters*.
    """

    name: str
    characters: int
    description: int = 0
    input_schema: int = 0
    output_schema: int = 0

    @property
    def tokens(self) -> int:
        """The estimate of the tokens."""
        return tokens_in(self.characters)


def tokens_in(characters: int) -> int:
    """Return the estimate of the tokens in so many characters."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def costs_of(definitions: Iterable[Mapping[str, Any]]) -> list[Cost]:
    """Return what each tool costs, the most expensive first."""
    costs = []
    for definition in definitions:
        name = str(definition.get("name"))
        parts = [_characters_of(definition.get(member)) for member in ("description", "inputSchema", "outputSchema")]
        costs.append(Cost(name, _characters_of(only(definition, _FOR_MODELS)), *parts))
    return sorted(costs, key=lambda cost: (-cost.characters, cost.name))


def _characters_of(value: object) -> int:
    """Return the characters of a value as JSON; none if it is missing."""
    return 0 if value is None else len(encode(value).decode())


def tokens_of(costs: Iterable[Cost]) -> int:
    """Return the estimate of the tokens of several tools."""
    return tokens_in(sum(cost.characters for cost in costs))


def tokens_of_server(server: MCPServer) -> int:
    """Return the estimate of the tokens of the list that most clients of a server get."""
    return tokens_of(costs_of(_definitions(runtime_of(server).server.routes.lists["tools/list"].shown())))


def report_tokens(
    description: Mapping[str, Any], server: MCPServer | None, *, as_json: bool, limit: int | None
) -> bool:
    """Print what the tools in a list and the instructions cost.

    Args:
        description: The description of a server, of which ``tools`` and ``instructions`` count.
        server: The server, if it is in this process.
        as_json: Print one JSON document.
        limit: The number of tokens that the tools and the instructions may cost.

    Returns:
        Whether they cost no more than the limit.
    """
    costs = costs_of(description["tools"])
    instruction_tokens = tokens_in(len(description.get("instructions") or ""))
    tokens = tokens_of(costs) + instruction_tokens
    hidden = _hidden_tokens(server)
    if as_json:
        report = {
            "tools": [_row_of(cost) for cost in costs],
            "characters": sum(cost.characters for cost in costs),
            "tokens": tokens_of(costs),
            "instructionsTokens": instruction_tokens,
            "totalTokens": tokens,
            "tokensWithSearch": _search_tokens(),
        }
        write_json(report if hidden is None else {**report, "tokensWithoutSearch": hidden})
    else:
        _print_costs(costs, instruction_tokens, hidden)
    if limit is not None and tokens > limit:
        sources = "The tools and the instructions" if instruction_tokens else "The tools"
        write_line(f"{sources} cost about {tokens:,} tokens, more than --max-tokens {limit:,}.", error=True)
        return False
    return True


def _row_of(cost: Cost) -> dict[str, Any]:
    return {
        "name": cost.name,
        "characters": cost.characters,
        "tokens": cost.tokens,
        "descriptionTokens": tokens_in(cost.description),
        "inputSchemaTokens": tokens_in(cost.input_schema),
        "outputSchemaTokens": tokens_in(cost.output_schema),
    }


def _print_costs(costs: Sequence[Cost], instruction_tokens: int, hidden: int | None) -> None:
    rows = []
    for cost in costs:
        parts = (tokens_in(part) for part in (cost.description, cost.input_schema, cost.output_schema))
        rows.append((cost.name, f"{cost.characters:,}", f"{cost.tokens:,}", *(f"{part:,}" for part in parts)))
    print_rows(("Tool", "Characters", "Tokens (estimate)", "Description", "Input schema", "Output schema"), rows)
    tokens = tokens_of(costs)
    write_line(f"{len(costs):,} tools cost a model about {tokens:,} tokens (characters / {CHARACTERS_PER_TOKEN}).")
    if instruction_tokens:
        write_line(f"The instructions cost about {instruction_tokens:,} tokens more.")
    if hidden is not None:
        write_line(f"Without mcp.tool_search() all tools would cost about {hidden:,} tokens.")
    elif tokens > 2 * _search_tokens():
        write_line(f"With mcp.tool_search() the list would cost about {_search_tokens():,} tokens.")


def _hidden_tokens(server: MCPServer | None) -> int | None:
    """Return the tokens of all tools of a server with a search; None for other servers."""
    if server is None:
        return None
    tools = runtime_of(server).server.routes.lists["tools/list"]
    if len(tools.all()) == len(list(tools.registry)):
        return None
    return tokens_of(costs_of(_definitions(tools.all())))


def _search_tokens() -> int:
    """Return the tokens of a list that has only the two tools of a search."""
    server = MCPServer("search")
    server.tool_search()
    return tokens_of_server(server)


def _definitions(tools: Iterable[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the definitions of tools. The lists of the server report those that have none."""
    for tool in tools:
        try:
            yield tool.describe()
        except RegistrationError:
            continue
