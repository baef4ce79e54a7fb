"""Why tools are not usable in some clients: faults of the clients, each with its report or the line of its source.

`verdicts` looks for the first row whose library, API and pattern fit a problem. The pattern is searched for in the
group, the name of the tool and the text of the problem. Lines are those of the pinned versions.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A fault of a client.

    Attributes:
        library: How the names of the libraries that have it begin.
        api: The API for which the client declares tools; None for any.
        pattern: A regular expression.
        text: What the client does.
        source: The public report, or the line of its source.
    """

    library: str
    api: str | None
    pattern: str
    text: str
    source: str


_RECURSIVE = "recursive_model"
_NO_CALL = "called: KeyError"
"""A tool that is not converted can't be called."""

FAULTS = (
    Fault(
        "",
        None,
        r"corpus calculate_india_electricity_bill .*array without `items`",
        "The author's own schema has an array without `items`. funcmcp sends it unchanged.",
        "calcnook-mcp 0.1.0",
    ),
    Fault(
        "",
        None,
        r"samples json_schema_2020_12_tool .*combinations at the top",
        "The schema of the official conformance suite has `allOf` at the top. funcmcp sends it unchanged.",
        "modelcontextprotocol/conformance",
    ),
    Fault(
        "google-genai",
        "gemini",
        r"AttributeError: 'bool' object has no attribute 'items'",
        "Fails for boolean `additionalProperties`, which only schemas of authors have. No tool of the list is left.",
        "googleapis/python-genai#2393",
    ),
    Fault(
        "google-genai",
        "gemini",
        rf"{_RECURSIVE} ",
        "Leaves the items of an array out where they refer to an outer model.",
        "google/genai/types.py:3729",
    ),
    Fault(
        "google-genai",
        "gemini",
        "an enum of other values",
        "Copies enums of numbers, which the API refuses.",
        "google/genai/_mcp_utils.py:172",
    ),
    Fault(
        "google-genai",
        "gemini",
        "a format other than",
        "Copies formats that the API refuses.",
        "google/genai/_mcp_utils.py:172",
    ),
    Fault(
        "google-genai",
        "gemini",
        "any_value .*a part without a type",
        "Declares an argument of any type without a type, which the API refuses.",
        "google/genai/_mcp_utils.py:162",
    ),
    Fault(
        "google-adk",
        None,
        "has no prompts",
        "Has no prompts.",
        "google/adk/tools/mcp_tool/mcp_toolset.py",
    ),
    Fault(
        "langchain-mcp-adapters",
        None,
        "AudioContent conversion",
        "Fails for a result with sound.",
        "langchain_mcp_adapters/tools.py:202",
    ),
    Fault(
        "langchain-mcp-adapters",
        None,
        "Unsupported prompt message content type",
        "Takes only texts in prompts.",
        "langchain_mcp_adapters/prompts.py:35",
    ),
    Fault(
        "langchain-mcp-adapters",
        "openai",
        rf"{_RECURSIVE} ",
        "Replaces the inner references of a recursive model by nothing.",
        "langchain_core/utils/json_schema.py:122",
    ),
    Fault(
        "langchain-mcp-adapters",
        "gemini",
        "ValidationError: .*Input should be a valid string",
        "Fails for enums of numbers.",
        "langchain-ai/langchain-google#2013",
    ),
    Fault(
        "langchain-mcp-adapters",
        "gemini",
        "object is missing",
        "Declares an object without named members as a text.",
        "langchain_google_genai/_function_utils.py:593",
    ),
    Fault(
        "langchain-mcp-adapters",
        "gemini",
        r"(fixed_tuple|discriminated_list) ",
        "Declares one type of an array's items where there are several.",
        "langchain_google_genai/_function_utils.py:615",
    ),
    Fault(
        "langchain-mcp-adapters",
        "gemini",
        "becomes required",
        "Requires members of nested objects that have no default.",
        "langchain_google_genai/_function_utils.py:587",
    ),
    Fault(
        "langchain-mcp-adapters",
        "gemini",
        "any_value .*any type becomes string",
        "Declares an argument of any type as a text.",
        "langchain_google_genai/_function_utils.py:196",
    ),
    Fault(
        "openai-agents",
        "openai strict",
        "becomes required",
        "Requires optional arguments in strict schemas, so that a model invents values where they do not take null.",
        "agents/strict_schema.py:249",
    ),
    Fault(
        "openai-agents",
        "openai strict",
        "a format outside of its list",
        "Copies formats that the API refuses in strict schemas.",
        "agents/strict_schema.py:156",
    ),
    Fault(
        "openai-agents",
        "openai strict",
        "any_value .*a part without a type",
        "Declares an argument of any type as strict, which the API refuses.",
        "agents/strict_schema.py:156",
    ),
    Fault(
        "semantic-kernel",
        "openai",
        rf"({_RECURSIVE}|json_schema_2020_12_tool) ",
        "Copies the properties of a schema without its definitions.",
        "semantic_kernel/connectors/mcp.py:208",
    ),
    Fault(
        "semantic-kernel",
        None,
        "<prompt> KernelInvokeException",
        "Requires the optional arguments of prompts.",
        "semantic_kernel/connectors/mcp.py:198",
    ),
    Fault(
        "mcp-use",
        None,
        rf"RecursionError|{_NO_CALL}",
        "Converts a recursive model without end.",
        "jsonschema_pydantic/transform.py:37",
    ),
    Fault(
        "mcp-use",
        "openai",
        "no values",
        "Leaves the values of enums out.",
        "jsonschema_pydantic/transform.py:40",
    ),
    Fault(
        "mcp-use",
        None,
        "json_schema_2020_12_tool called: CallError: .*not null",
        "Sends null for arguments that the model leaves out. The author's own schema does not take it.",
        "jsonschema_pydantic/transform.py:88",
    ),
    Fault(
        "llama-index",
        None,
        rf"RecursionError|{_NO_CALL}",
        "Converts a recursive model without end.",
        "llama_index/tools/mcp/tool_spec_mixins.py:39",
    ),
    Fault(
        "llama-index",
        "openai",
        "absent|alternatives are merged",
        "Leaves the members of nested objects out.",
        "run-llama/llama_index#22141",
    ),
    Fault(
        "llama-index",
        "openai",
        "any_value .*any type becomes string",
        "Declares an argument of any type as a text.",
        "llama_index/tools/mcp/tool_spec_mixins.py:88",
    ),
    Fault(
        "llama-index",
        None,
        "Embedded resources are not supported yet",
        "Takes no embedded resources in prompts.",
        "llama_index/tools/mcp/client.py:401",
    ),
    Fault(
        "@langchain",
        None,
        rf"{_RECURSIVE} ",
        "Replaces the inner references of a recursive model by any object.",
        "@langchain/mcp-adapters/dist/tools.cjs:37",
    ),
    Fault(
        "@langchain",
        None,
        "json_schema_2020_12_tool .*becomes required",
        "Requires what both branches of a condition require.",
        "@langchain/mcp-adapters/dist/tools.cjs:121",
    ),
    Fault(
        "@langchain",
        None,
        "alternatives are merged|Received tool input did not match expected schema",
        "Merges the alternatives of a union into one object, and refuses arguments for one of them.",
        "langchain-ai/langchainjs#11302",
    ),
    Fault(
        "@langchain",
        None,
        "no type|(union|nullable|tuple|find_|lean_|list_files|unit_trust)\\S* .*a part without a type",
        "Drops the types of a union that is not one of objects.",
        "langchain-ai/langchainjs#11593",
    ),
    Fault(
        "@langchain",
        "gemini",
        "an enum of other values|a format other than|a keyword|any_value .*a part without a type",
        "Copies keywords, formats, enums of numbers and parts without types, which the API refuses.",
        "@langchain/google-genai/dist/utils/zod_to_genai_parameters.cjs:5",
    ),
)
