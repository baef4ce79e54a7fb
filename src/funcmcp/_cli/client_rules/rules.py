"""What clients and the APIs of models accept, and what happens otherwise: one row for each restriction.

The specification allows all of it. A row is here because somebody has seen the restriction, or because its owner
documents it. The table of docs/guides/compatibility.md is made of these rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from funcmcp._cli.client_rules import checks

if TYPE_CHECKING:
    from funcmcp._cli.client_rules.checks import Check
    from funcmcp._cli.client_rules.subjects import Kind

Loss: TypeAlias = Literal["server", "feature", "detail"]

LOSSES: dict[Loss, str] = {
    "server": "all tools, or the whole list, are lost",
    "feature": "the feature is lost",
    "detail": "the feature works, but differs",
}
"""What the worst client of a rule loses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A restriction of clients.

    Attributes:
        word: The rule's name.
        kind: The features that it restricts.
        loss: What is lost in the worst of the clients.
        clients: The clients and APIs with the restriction.
        seen: The versions or dates of the observations.
        accepts: What these clients accept, as a sentence.
        effect: What happens otherwise, as a sentence.
        advice: What the author of a server can do.
        sources: URLs of reports, documentation and source code.
        check: Yields the places that break the rule.
    """

    word: str
    kind: Kind
    loss: Loss
    clients: tuple[str, ...]
    seen: str
    accepts: str
    effect: str
    advice: str
    sources: tuple[str, ...]
    check: Check

    def concerns(self, client: str) -> bool:
        """Return whether a client has the restriction, by its name or as a member of a group."""
        return client in self.clients or any(client in MEMBERS.get(group, ()) for group in self.clients)


_ON_PYTHON_SDK = ("langchain-mcp-adapters", "LlamaIndex", "mcp-use", "openai-agents in strict mode")
_ON_TYPESCRIPT_SDK = ("Claude Code", "Claude Desktop", "Cursor", "Gemini CLI", "LangChain.js", "LibreChat")
MEMBERS = {
    "clients in JavaScript": (*_ON_TYPESCRIPT_SDK, "Copilot CLI", "LM Studio", "Visual Studio Code"),
    "clients on the TypeScript SDK": _ON_TYPESCRIPT_SDK,
    "clients with Ajv": _ON_TYPESCRIPT_SDK,  # the SDK validates results with it
    "clients on the Python SDK 1.x": _ON_PYTHON_SDK,
}
"""Clients of the rules that belong to a group of clients in the rules."""

_GITHUB = "https://github.com"
_AZURE_STRICT = "https://learn.microsoft.com/azure/ai-services/openai/how-to/structured-outputs"
_BEDROCK = "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolSpecification.html"
_GEMINI = (
    "https://cloud.google.com/vertex-ai/generative-ai/docs/reference/java/latest/"
    "com.google.cloud.vertexai.api.FunctionDeclarationOrBuilder"
)
_GOOGLE_GENAI = "https://pypi.org/project/google-genai/3.6.1/"
_LANGCHAIN_CORE = "https://pypi.org/project/langchain-core/1.8.3/"
_LANGCHAIN_GOOGLE = "https://pypi.org/project/langchain-google-genai/4.4.2/"
_LANGCHAIN_JS = "https://www.npmjs.com/package/@langchain/mcp-adapters/v/1.1.4"
_LLAMA_INDEX = "https://pypi.org/project/llama-index-tools-mcp/0.6.0/"
_MCP_USE = "https://pypi.org/project/mcp-use/1.7.1/"
_OPENAI_AGENTS = "https://pypi.org/project/openai-agents/0.24.0/"

RULES = (
    Rule(
        word="many-tools",
        kind="server",
        loss="server",
        clients=("Visual Studio Code", "OpenAI API", "Azure OpenAI"),
        seen="Visual Studio Code 1.100; documented by Azure",
        accepts=f"A request to a model has up to {checks.MAX_TOOLS} tools, those of other servers included.",
        effect="Every request with the tools fails.",
        advice="Split the server, or hide tools that a caller does not need.",
        sources=(
            f"{_GITHUB}/microsoft/vscode-copilot-release/issues/9375",
            "https://learn.microsoft.com/azure/ai-services/openai/quotas-limits",
        ),
        check=checks.many_tools,
    ),
    Rule(
        word="name-characters",
        kind="tool",
        loss="server",
        clients=(
            *("OpenAI API", "Claude API", "Amazon Bedrock", "Codex", "Copilot CLI", "Claude Desktop", "Cursor"),
            "Semantic Kernel",
        ),
        seen="Codex 0.73, Copilot CLI 0.0.423, Semantic Kernel 1.45",
        accepts="A tool's name has only letters, digits, _ and -.",
        effect="The client fails with all tools, or hides the tool. The specification also allows dots.",
        advice="Write _ instead of other characters.",
        sources=(
            f"{_GITHUB}/openai/codex/issues/8174",
            f"{_GITHUB}/github/copilot-cli/issues/2581",
            f"{_GITHUB}/barryw/ImmichMCP/issues/4",
            f"{_GITHUB}/webstudio-is/webstudio/issues/5960",
            _BEDROCK,
        ),
        check=checks.name_characters,
    ),
    Rule(
        word="name-start",
        kind="tool",
        loss="server",
        clients=("Gemini API",),
        seen="Cline in November 2025; documented by Google",
        accepts="A tool's name begins with a letter or _.",
        effect="Every request with the tool is refused.",
        advice="Begin the name with a letter.",
        sources=(f"{_GITHUB}/cline/cline/issues/7339", _GEMINI),
        check=checks.name_start,
    ),
    Rule(
        word="long-name",
        kind="tool",
        loss="server",
        clients=("OpenAI API", "Gemini API", "Amazon Bedrock", "Claude Desktop"),
        seen="OpenAI API in May 2025, Claude Desktop in March 2026; documented by Google and Amazon",
        accepts=f"A tool's name has up to {checks.MAX_NAME} characters.",
        effect="Every request with the tool is refused.",
        advice="Shorten the name; clients add the server's name to it.",
        sources=(
            f"{_GITHUB}/microsoft/foundry-dev-tools/issues/201",
            f"{_GITHUB}/barryw/ImmichMCP/issues/4",
            _BEDROCK,
            _GEMINI,
        ),
        check=checks.long_name,
    ),
    Rule(
        word="long-full-name",
        kind="tool",
        loss="feature",
        clients=("Cursor", "Claude Desktop"),
        seen="Cursor 1.6 to February 2026",
        accepts=f"The names of the server and the tool have up to {checks.MAX_FULL_NAME} characters together.",
        effect="The tool is hidden. Claude Desktop allows 64 characters.",
        advice="Shorten the name of the tool, or install the server under a shorter one.",
        sources=(
            f"{_GITHUB}/ComposioHQ/composio/issues/2788",
            f"{_GITHUB}/awslabs/mcp/issues/1283",
            f"{_GITHUB}/sparfenyuk/mcp-proxy/issues/45",
        ),
        check=checks.long_full_name,
    ),
    Rule(
        word="no-description",
        kind="tool",
        loss="server",
        clients=("LibreChat with Amazon Bedrock",),
        seen="LibreChat 0.8.6",
        accepts="A tool has a description that is not empty.",
        effect="Every request with the tool is refused. Other models choose a tool by its description.",
        advice="Write a docstring.",
        sources=(f"{_GITHUB}/LibreChat-AI/agents/issues/215", f"{_GITHUB}/danny-avila/LibreChat/issues/13209"),
        check=checks.no_description,
    ),
    Rule(
        word="long-description",
        kind="tool",
        loss="server",
        clients=("some models of the OpenAI API", "Azure OpenAI", "LlamaIndex"),
        seen="gpt-4o and o3-mini in March and April 2025, llama-index-tools-mcp 0.6.0",
        accepts=f"A tool's description has up to {checks.MAX_DESCRIPTION} characters.",
        effect="Every request with the tool is refused. LlamaIndex fails with ValueError.",
        advice="Move details to the descriptions of the arguments, or to a resource.",
        sources=(
            f"{_GITHUB}/modelcontextprotocol/servers/issues/799",
            f"{_GITHUB}/getsentry/sentry-mcp/issues/106",
            _LLAMA_INDEX,
        ),
        check=checks.long_description,
    ),
    Rule(
        word="no-properties",
        kind="tool",
        loss="server",
        clients=("OpenAI API", "Azure OpenAI", "Codex", "LibreChat", "LM Studio"),
        seen="2025 and 2026",
        accepts="The input schema has properties, {} for a tool without arguments.",
        effect="The tool, or the request with all tools, is refused.",
        advice='Add "properties": {}.',
        sources=(
            f"{_GITHUB}/kagent-dev/kagent/issues/1888",
            f"{_GITHUB}/unclecode/crawl4ai/issues/2207",
            f"{_GITHUB}/langchain-ai/langchain-mcp-adapters/issues/137",
        ),
        check=checks.no_properties,
    ),
    Rule(
        word="combined-top",
        kind="tool",
        loss="server",
        clients=("Claude API", "Claude Code", "OpenAI API", "Azure OpenAI"),
        seen="Claude Code 1.0.35 and 2.0.21, Claude API in August 2026, gpt-5.2",
        accepts="The input schema has no anyOf, oneOf, allOf, enum or not at its top.",
        effect="Every request with the tool is refused, or the tool is dropped silently.",
        advice="Describe the alternatives in the description, and check them in the tool.",
        sources=(
            f"{_GITHUB}/makenotion/notion-mcp-server/issues/341",
            f"{_GITHUB}/anthropics/claude-code/issues/95504",
            f"{_GITHUB}/langchain-ai/langchainjs/issues/9804",
            f"{_GITHUB}/DeusData/codebase-memory-mcp/issues/1524",
        ),
        check=checks.combined_top,
    ),
    Rule(
        word="boolean-schema",
        kind="tool",
        loss="server",
        clients=("google-genai", "langchain-google-genai", "mcp-use"),
        seen="google-genai 2.34.0 and 3.6.1, langchain-google-genai 4.4.2, mcp-use 1.7.1",
        accepts="No additionalProperties, items or property is true or false.",
        effect="The conversion of the list fails with AttributeError or TypeError.",
        advice="Leave the keyword out. The server refuses unknown arguments without it.",
        sources=(f"{_GITHUB}/googleapis/python-genai/issues/2393", _GOOGLE_GENAI, _LANGCHAIN_GOOGLE, _MCP_USE),
        check=checks.boolean_schema,
    ),
    Rule(
        word="reference",
        kind="tool",
        loss="server",
        clients=("google-genai", "mcp-use", "langchain-mcp-adapters"),
        seen="google-genai 2.34.0 and 3.6.1, mcp-use 1.7.1, langchain-core 1.8.3",
        accepts="A $ref names a definition in the $defs at the top, and the name needs no escapes.",
        effect="The conversion of the list fails with KeyError, or the argument has no type.",
        advice="Move what is referred to into $defs.",
        sources=(_GOOGLE_GENAI, _MCP_USE, _LANGCHAIN_CORE),
        check=checks.reference,
    ),
    Rule(
        word="any-reference",
        kind="tool",
        loss="feature",
        clients=("Codex", "Copilot CLI", "Claude Code", "Visual Studio Code", "Semantic Kernel"),
        seen="Codex 0.29, Copilot CLI 0.0.423, Semantic Kernel 1.45; Visual Studio Code and Claude Code in 2026",
        accepts="The input schema has no $ref.",
        effect="The model sees a text, or nothing, in place of the type, and its calls are refused.",
        advice="Write the definition in its place, or take fewer nested models.",
        sources=(
            f"{_GITHUB}/openai/codex/issues/3152",
            f"{_GITHUB}/github/copilot-cli/issues/1876",
            f"{_GITHUB}/anthropics/claude-code/issues/58794",
            f"{_GITHUB}/microsoft/vscode/issues/286415",
            "https://pypi.org/project/semantic-kernel/1.45.0/",
        ),
        check=checks.any_reference,
    ),
    Rule(
        word="unknown-required",
        kind="tool",
        loss="server",
        clients=("Gemini API",),
        seen="gemini-3-flash-preview in May 2026",
        accepts="Each name in required is one of properties.",
        effect="Every request with the tool is refused.",
        advice="Describe the argument in properties.",
        sources=(f"{_GITHUB}/iBUHub/AIStudioToAPI/issues/154",),
        check=checks.unknown_required,
    ),
    Rule(
        word="recursion",
        kind="tool",
        loss="server",
        clients=("LlamaIndex", "mcp-use", "google-genai", "langchain-mcp-adapters"),
        seen="llama-index-tools-mcp 0.6.0, mcp-use 1.7.1, google-genai 3.6.1, langchain-core 1.8.3",
        accepts="No definition refers to itself.",
        effect="The conversion of the list fails with RecursionError. google-genai and LangChain leave parts out.",
        advice="Limit the depth with separate types, or take the value as text.",
        sources=(_LLAMA_INDEX, _MCP_USE, _GOOGLE_GENAI, _LANGCHAIN_CORE),
        check=checks.recursion,
    ),
    Rule(
        word="one-of",
        kind="tool",
        loss="server",
        clients=("OpenAI API", "Codex", "google-genai", "mcp-use"),
        seen="2026; google-genai 2.34.0 and 3.6.1, mcp-use 1.7.1",
        accepts="Alternatives are anyOf, not oneOf.",
        effect="The request is refused. google-genai and mcp-use send the argument without a type.",
        advice="Write anyOf.",
        sources=(
            f"{_GITHUB}/can1357/oh-my-pi/issues/920",
            f"{_GITHUB}/justrach/codedb/issues/440",
            _GOOGLE_GENAI,
            _MCP_USE,
        ),
        check=checks.one_of,
    ),
    Rule(
        word="all-of",
        kind="tool",
        loss="server",
        clients=("OpenAI API in strict mode", "google-genai", "langchain-google-genai", "mcp-use"),
        seen="gpt-4.1-nano in August 2025, google-genai 3.6.1, langchain-google-genai 4.4.2, mcp-use 1.7.1",
        accepts="No part of the input schema is an allOf.",
        effect="The request is refused. Others send the argument without a type, or as text.",
        advice="Write one schema with the keywords of all.",
        sources=(
            f"{_GITHUB}/makenotion/notion-mcp-server/issues/102",
            _GOOGLE_GENAI,
            _LANGCHAIN_GOOGLE,
            _MCP_USE,
        ),
        check=checks.all_of,
    ),
    Rule(
        word="no-items",
        kind="tool",
        loss="server",
        clients=("Visual Studio Code", "OpenAI API", "Gemini API"),
        seen="2025; gemini-3-pro-preview",
        accepts="Every array has items, also beside prefixItems.",
        effect="Every request with the tool fails.",
        advice='Add "items".',
        sources=(
            f"{_GITHUB}/microsoft/vscode/issues/284536",
            f"{_GITHUB}/apify/apify-mcp-server/issues/36",
            f"{_GITHUB}/cline/cline/issues/7926",
        ),
        check=checks.no_items,
    ),
    Rule(
        word="number-enum",
        kind="tool",
        loss="server",
        clients=("Gemini API", "langchain-google-genai"),
        seen="langchain-google-genai 4.4.2",
        accepts="The values of an enum are strings.",
        effect="The tool is refused. langchain-google-genai fails with ValidationError.",
        advice="Use strings, or a range with minimum and maximum.",
        sources=(
            f"{_GITHUB}/google-gemini/gemini-cli/issues/4127",
            f"{_GITHUB}/kensho-technologies/kfinance/issues/128",
            _LANGCHAIN_GOOGLE,
        ),
        check=checks.number_enum,
    ),
    Rule(
        word="mixed-enum",
        kind="tool",
        loss="server",
        clients=("Gemini API", "langchain-google-genai"),
        seen="langchain-google-genai 4.4.2",
        accepts="All values of an enum have one type. null is another type.",
        effect="The tool is refused. langchain-google-genai fails with ValidationError.",
        advice="Use strings only. Make the argument optional instead of listing null.",
        sources=(f"{_GITHUB}/google-gemini/gemini-cli/issues/4127", _LANGCHAIN_GOOGLE),
        check=checks.mixed_enum,
    ),
    Rule(
        word="empty-enum-value",
        kind="tool",
        loss="server",
        clients=("Gemini API",),
        seen="April and September 2026",
        accepts='No value of an enum is "".',
        effect="Every request with the tool is refused.",
        advice="Make the argument optional instead.",
        sources=(
            f"{_GITHUB}/sbroenne/mcp-server-excel/issues/607",
            f"{_GITHUB}/anomalyco/opencode/pull/46676",
        ),
        check=checks.empty_enum_value,
    ),
    Rule(
        word="const",
        kind="tool",
        loss="server",
        clients=("Gemini API", "google-genai", "langchain-google-genai", "LlamaIndex", "mcp-use"),
        seen="Zed in December 2025, google-genai 3.6.1, langchain-google-genai 4.4.2, llama-index-tools-mcp 0.6.0",
        accepts="A single value is an enum, not const.",
        effect="The request is refused. Libraries drop the value, so the members of a union look alike.",
        advice="Write an enum with one value.",
        sources=(
            f"{_GITHUB}/zed-industries/zed/issues/44875",
            _GOOGLE_GENAI,
            _LANGCHAIN_GOOGLE,
            _LLAMA_INDEX,
            _MCP_USE,
        ),
        check=checks.const,
    ),
    Rule(
        word="many-enum-values",
        kind="tool",
        loss="detail",
        clients=("Gemini API",),
        seen="gemini-3-flash-preview in March 2026",
        accepts=f"The enums of all tools together have few values: about {checks.MAX_ENUM_VALUES}.",
        effect="A request that must call a tool (mode ANY) is refused.",
        advice="Take a string, and list the values in the description or a resource.",
        sources=(f"{_GITHUB}/googleapis/python-genai/issues/2133",),
        check=checks.many_enum_values,
    ),
    Rule(
        word="property-key",
        kind="tool",
        loss="server",
        clients=("Claude API", "Claude Code"),
        seen="Claude Code 1.0.62, Claude API in May 2026",
        accepts="Names of arguments and members have 1 to 64 letters, digits, _, . and -.",
        effect="Every request with the tool is refused.",
        advice="Rename the argument, for example with an alias.",
        sources=(
            f"{_GITHUB}/anthropics/claude-code/issues/92648",
            f"{_GITHUB}/anthropics/claude-code/issues/4668",
            f"{_GITHUB}/beautyfree/appstore-connect-mcp/issues/2",
        ),
        check=checks.claude_property_key,
    ),
    Rule(
        word="property-start",
        kind="tool",
        loss="feature",
        clients=("mcp-use", "Gemini API on Vertex AI"),
        seen="mcp-use 1.7.1; documented by Google",
        accepts="Names of arguments have 1 to 64 letters, digits and _, and begin with a letter or _.",
        effect="mcp-use does not declare the argument.",
        advice="Rename the argument, for example with an alias.",
        sources=(_MCP_USE, _GEMINI),
        check=checks.gemini_property_key,
    ),
    Rule(
        word="input-pattern",
        kind="tool",
        loss="feature",
        clients=("LangChain.js",),
        seen="2026",
        accepts="Patterns are regular expressions of ECMA-262 with the flag u.",
        effect="Every call of the tool fails.",
        advice=r"Write \d{3}-\d{4}, not \d{3}\-\d{4}; no (?i), (?P<name>...), \A, \z or \Z.",
        sources=(f"{_GITHUB}/langchain-ai/langchainjs/issues/11351",),
        check=checks.input_pattern,
    ),
    Rule(
        word="output-pattern",
        kind="tool",
        loss="server",
        clients=("clients on the TypeScript SDK",),
        seen="TypeScript SDK 1.32.2 and 2.4.0",
        accepts="Patterns are regular expressions of ECMA-262 with the flag u.",
        effect="With the SDK 1.x, listTools() fails, so no tool is left. With 2.x, every call of the tool fails.",
        advice=r"Write \d{3}-\d{4}, not \d{3}\-\d{4}; no (?i), (?P<name>...), \A, \z or \Z.",
        sources=(f"{_GITHUB}/anomalyco/opencode/issues/35624",),
        check=checks.output_pattern,
    ),
    Rule(
        word="unknown-format",
        kind="tool",
        loss="detail",
        clients=("clients with Ajv",),
        seen="2026",
        accepts="Formats are those of JSON Schema.",
        effect="Each list logs a warning. Ajv in strict mode refuses the schema.",
        advice="Leave the format out, and describe it.",
        sources=(f"{_GITHUB}/longbridge/developers/issues/1264",),
        check=checks.unknown_format,
    ),
    Rule(
        word="openai-format",
        kind="tool",
        loss="server",
        clients=("OpenAI API in strict mode",),
        seen="January to July 2026",
        accepts=f"Formats are {', '.join(sorted(checks.OPENAI_FORMATS))}.",
        effect="Every request with the tool is refused, in clients that choose strict mode.",
        advice="Leave the format out. The server can still check it.",
        sources=(
            f"{_GITHUB}/tailcallhq/forgecode/issues/2974",
            f"{_GITHUB}/cyanheads/git-mcp-server/issues/47",
            f"{_GITHUB}/posit-dev/chatlas/pull/255",
        ),
        check=checks.openai_format,
    ),
    Rule(
        word="gemini-format",
        kind="tool",
        loss="detail",
        clients=("Gemini API with google-genai and Gemini CLI",),
        seen="Gemini CLI 0.1.5 in June 2025, google-genai 3.6.1",
        accepts="The format of a text is date-time. Many clients remove other formats for this API.",
        effect="The API refused the request in 2025.",
        advice="Leave the format out if your clients send it to this API.",
        sources=(f"{_GITHUB}/google-gemini/gemini-cli/issues/2237", _GOOGLE_GENAI),
        check=checks.gemini_format,
    ),
    Rule(
        word="no-type",
        kind="tool",
        loss="server",
        clients=("Gemini API", "Gemini CLI", "OpenAI API in strict mode", "langchain-google-genai", "LlamaIndex"),
        seen="Gemini API in 2025, langchain-google-genai 4.4.2, llama-index-tools-mcp 0.6.0",
        accepts="Every part of the input schema has a type, or alternatives with types.",
        effect="The request is refused, or the tool is skipped. Libraries declare text.",
        advice="Annotate the parameter with the types that the tool accepts, instead of Any.",
        sources=(
            f"{_GITHUB}/danny-avila/LibreChat/issues/6971",
            f"{_GITHUB}/arben-adm/mcp-sequential-thinking/issues/12",
            f"{_GITHUB}/coder/xum/issues/3821",
            _LANGCHAIN_GOOGLE,
            _LLAMA_INDEX,
        ),
        check=checks.no_type,
    ),
    Rule(
        word="several-types",
        kind="tool",
        loss="server",
        clients=("Semantic Kernel", "langchain-google-genai", "LlamaIndex"),
        seen="Semantic Kernel 1.45, langchain-google-genai 4.4.2, llama-index-tools-mcp 0.6.0",
        accepts="A type is one name, not a list. Alternatives are anyOf.",
        effect="Semantic Kernel does not connect to the server. The others declare only the first type.",
        advice="Write anyOf.",
        sources=("https://pypi.org/project/semantic-kernel/1.45.0/", _LANGCHAIN_GOOGLE, _LLAMA_INDEX),
        check=checks.several_types,
    ),
    Rule(
        word="bare-object",
        kind="tool",
        loss="feature",
        clients=("langchain-google-genai",),
        seen="langchain-google-genai 4.4.2",
        accepts="An argument or a member that is an object has properties, or a schema for all its members.",
        effect="The argument is declared as text, so models send text, which the server refuses.",
        advice="Annotate the parameter with a model, a TypedDict, or dict[str, T].",
        sources=(_LANGCHAIN_GOOGLE,),
        check=checks.bare_object,
    ),
    Rule(
        word="open-object",
        kind="tool",
        loss="detail",
        clients=("OpenAI API in strict mode", "openai-agents in strict mode"),
        seen="openai-agents 0.24.0",
        accepts="The names of an object's members are known.",
        effect="Strict mode is not possible; openai-agents sends the tool without it.",
        advice="Use a model, or a list of objects with a name and a value.",
        sources=(_OPENAI_AGENTS, _AZURE_STRICT),
        check=checks.open_object,
    ),
    Rule(
        word="optional-null",
        kind="tool",
        loss="feature",
        clients=("Cursor",),
        seen="2026",
        accepts="The type of an optional argument does not include null.",
        effect="The argument cannot be used.",
        advice="Give the parameter the default None: its schema then omits null.",
        sources=(f"{_GITHUB}/cursor/cursor/issues/3778",),
        check=checks.optional_null,
    ),
    Rule(
        word="strict-size",
        kind="tool",
        loss="detail",
        clients=("Azure OpenAI in strict mode", "some models of the OpenAI API in strict mode"),
        seen="o3 in 2025; documented by Azure",
        accepts=(
            f"The input schema has up to {checks.MAX_STRICT_PROPERTIES} properties, in up to "
            f"{checks.MAX_STRICT_LEVELS} levels."
        ),
        effect="Strict mode is not possible.",
        advice="Split the tool, or flatten its arguments.",
        sources=(_AZURE_STRICT, f"{_GITHUB}/tidyverse/ellmer/issues/671"),
        check=checks.strict_size,
    ),
    Rule(
        word="object-union",
        kind="tool",
        loss="feature",
        clients=("LangChain.js",),
        seen="@langchain/mcp-adapters 1.1.4",
        accepts="At most one alternative of a value is an object.",
        effect="The alternatives become one object, so calls with the members of one alternative are refused.",
        advice="Write a tool for each alternative, or one object with optional members.",
        sources=(f"{_GITHUB}/langchain-ai/langchainjs/issues/11302", _LANGCHAIN_JS),
        check=checks.object_union,
    ),
    Rule(
        word="value-union",
        kind="tool",
        loss="detail",
        clients=("LangChain.js",),
        seen="@langchain/mcp-adapters 1.1.4",
        accepts="A value has one type, or null as well. An array is not null.",
        effect="The model sees no types.",
        advice="Take one type, and describe the argument.",
        sources=(f"{_GITHUB}/langchain-ai/langchainjs/issues/11593", _LANGCHAIN_JS),
        check=checks.value_union,
    ),
    Rule(
        word="nested-object",
        kind="tool",
        loss="detail",
        clients=("LlamaIndex",),
        seen="llama-index-tools-mcp 0.4.8 and 0.6.0",
        accepts="Arguments are plain values, or lists of them, and not objects with named members.",
        effect="The model sees an object without its members, and has to guess them.",
        advice="Take the members as arguments, or name them in the description.",
        sources=(f"{_GITHUB}/run-llama/llama_index/issues/22141", _LLAMA_INDEX),
        check=checks.nested_object,
    ),
    Rule(
        word="enum",
        kind="tool",
        loss="detail",
        clients=("mcp-use",),
        seen="mcp-use 1.7.1",
        accepts="No argument has an enum.",
        effect="The model does not see the values. The server refuses others, and names the valid ones.",
        advice="Name the values in the description as well.",
        sources=(_MCP_USE,),
        check=checks.enum,
    ),
    Rule(
        word="time-offset",
        kind="tool",
        loss="detail",
        clients=("LangChain.js",),
        seen="@langchain/mcp-adapters 1.1.4",
        accepts="Values of the formats time and date-time have an offset, such as 10:00:00Z.",
        effect="The client refuses the model's call with a time that has none. The server takes it.",
        advice="Give an example with an offset in the description of the argument.",
        sources=(_LANGCHAIN_JS,),
        check=checks.time_offset,
    ),
    Rule(
        word="large-integer",
        kind="tool",
        loss="detail",
        clients=("clients in JavaScript",),
        seen="TypeScript SDK 1.32.2",
        accepts="Integers are from -(2^53 - 1) to 2^53 - 1. Ids (id, order_id, orderIds) and bounds are checked.",
        effect="A larger integer is rounded without an error, in results and in the next call.",
        advice="Use a string, or state the range: Field(le=2**53 - 1).",
        sources=(f"{_GITHUB}/anthropics/claude-code/issues/78762",),
        check=checks.large_integer,
    ),
    Rule(
        word="left-out",
        kind="tool",
        loss="detail",
        clients=("all clients",),
        seen="a property of funcmcp",
        accepts="Patterns are those of ECMA-262, formats those of JSON Schema. Generated schemas omit others.",
        effect="Models do not know of the restriction. The server refuses values that break it.",
        advice="Rewrite the pattern, or describe it.",
        sources=(f"{_GITHUB}/anomalyco/opencode/issues/35624", f"{_GITHUB}/longbridge/developers/issues/1264"),
        check=checks.left_out,
    ),
    Rule(
        word="prompt-arguments",
        kind="prompt",
        loss="feature",
        clients=("Zed",),
        seen="since December 2024",
        accepts="A prompt has one argument, or none.",
        effect="The prompt is hidden.",
        advice="Take one text with everything, or offer a tool as well.",
        sources=(f"{_GITHUB}/zed-industries/zed/issues/21944",),
        check=checks.prompt_arguments,
    ),
    Rule(
        word="optional-prompt-arguments",
        kind="prompt",
        loss="detail",
        clients=("Semantic Kernel",),
        seen="Semantic Kernel 1.45",
        accepts="All arguments of a prompt are required.",
        effect="Users have to fill in the optional arguments.",
        advice="Write a prompt without the optional arguments.",
        sources=("https://pypi.org/project/semantic-kernel/1.45.0/",),
        check=checks.optional_prompt_arguments,
    ),
    Rule(
        word="prompt-words",
        kind="prompt",
        loss="feature",
        clients=("Claude Code",),
        seen="Claude Code 1.0.72",
        accepts="A prompt's name has no spaces.",
        effect="The command for the prompt is not found.",
        advice="Write _ or - instead of spaces.",
        sources=(f"{_GITHUB}/anthropics/claude-code/issues/5542",),
        check=checks.spaces_in_name,
    ),
    Rule(
        word="resource-words",
        kind="resource",
        loss="feature",
        clients=("Claude Code",),
        seen="Claude Code 1.0.72",
        accepts="A resource's name has no spaces.",
        effect="The resource is not found.",
        advice="Write _ or - instead of spaces, and pass the words as title=.",
        sources=(f"{_GITHUB}/anthropics/claude-code/issues/5542",),
        check=checks.spaces_in_name,
    ),
    Rule(
        word="resource-uri",
        kind="resource",
        loss="server",
        clients=("clients on the Python SDK 1.x",),
        seen="Python SDK 1.x",
        accepts="A resource's URI is absolute, and its scheme has no underscore.",
        effect="The list of resources fails with ValidationError.",
        advice="Write a URI such as orders://open.",
        sources=(
            f"{_GITHUB}/modelcontextprotocol/python-sdk/issues/1574",
            f"{_GITHUB}/PrefectHQ/fastmcp/issues/335",
        ),
        check=checks.resource_uri,
    ),
)

ALL_CLIENTS = "all clients"
CLIENTS = tuple(dict.fromkeys(client for rule in RULES for client in rule.clients if client != ALL_CLIENTS))
"""The clients and APIs that the rules are about."""
