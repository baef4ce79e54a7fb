"""What the report of ``funcmcp migrate`` says about names of FastMCP and of the official SDK, as data.

What `funcmcp.compat` has, ignores and refuses is read from itself (`compat_names.py`), and so is its advice. Here is
what it can't know: how something that it has behaves differently, and what to use for names that it has no advice for.
The guides docs/guides/from-fastmcp.md and docs/guides/from-the-sdk.md explain the differences.
"""

from __future__ import annotations

from funcmcp._compat.module_trees import INSTEAD_OF_NAMES

_SESSIONS = (
    'sessions are signed ids, and there is no GET stream unless sessions="memory" is passed; pages of other origins '
    "need http=HTTPOptions(allowed_origins=[...])"
)

SERVERS = {
    "fastmcp": _SESSIONS,
    "mcp.server.fastmcp": (
        f'{_SESSIONS}; a tool refuses unknown arguments (unknown_arguments="drop" drops them), and a second tool of '
        'one name replaces the first (on_duplicate="ignore" keeps the first); mcp.call_tool(...) returns one result '
        "with content and structured_content"
    ),
    "mcp.server.mcpserver": _SESSIONS,
}
"""How servers differ, by the package of their class."""

_LOW_LEVEL = (
    "it has only name, version, website_url, instructions and request_context, and a client in memory connects to it; "
    "rewrite the rest by hand"
)

DIFFERENCES = {
    "CurrentHeaders": "as get_http_headers: without headers that are not to be forwarded",
    "Depends": (
        "a plain factory of a plain function runs in its worker thread, and a dependency that suppresses an exception "
        "does not hide it: the call fails"
    ),
    "RequestStateSecurity": "it is ignored: the state of requests is sealed with keys of funcmcp",
    "create_proxy": "no header of a client is passed on",
    "get_access_token": "it is None in a custom route",
    "get_http_request": "the port in client is 0",
    "Context.get_state": "the state belongs to this process, and a request without a session has state of its own",
    "Context.set_state": "the state belongs to this process, and a request without a session has state of its own",
    "Context.delete_state": "the state belongs to this process, and a request without a session has state of its own",
    "FastMCP._mcp_server": _LOW_LEVEL,
    "FastMCP.as_proxy": "no header of a client is passed on",
    "FastMCP.custom_route": (
        "the server checks Host and Origin, and limits bodies; a route that fails answers with an error id"
    ),
    "MCPServer._lowlevel_server": _LOW_LEVEL,
    "FastMCP.import_server": "it is the same as mount: changes of the other server show",
}
"""How names that `funcmcp.compat` has differ: names of imports, and members of classes."""

OVERRIDES = {
    "FastMCP.add_tool": "@mcp.tool does not call it",
    "FastMCP.add_prompt": "@mcp.prompt does not call it",
    "FastMCP.add_resource": "@mcp.resource does not call it",
    "FastMCP.add_template": "@mcp.resource does not call it",
}
"""How methods that subclasses override differ."""

REFUSED_OPTIONS: dict[str, str] = {}
"""Options that a method has as a parameter and refuses."""

FUNCTIONS = {
    "bytes": "bytes are base64 in arguments, unless the config of a model says otherwise",
    "Dict": "a Dict of typing is the structured content itself; the SDK puts it into the member result",
    "dict": "a dict without types is the structured content itself; the SDK sends it as text alone",
    "thread": "a function that is not async runs in a worker thread, and not on the event loop",
}
"""How tools, resources and prompts differ."""

WITHOUT_SCHEME = "its URI has no scheme, so the resource is left out; write data:// or another one before it"

STAYING = frozenset({"MCPError"})
"""Names of the official SDK, beside its types, that `funcmcp.compat` understands if the package is installed."""

WHAT_TO_USE = INSTEAD_OF_NAMES | {
    "InputRequiredResult": "use await ctx.elicit(...)",
    "Completion": "keep the package mcp installed",
    "settings": "pass options to FastMCP(...) and mcp.run(...)",
    "Context.client_extension_settings": "use funcmcp.Context and its client_info",
    "Context.close_standalone_sse_stream": "leave it out: there is no such stream without sessions in memory",
    "Context.sample_step": "use await ctx.sample(...), and call tools yourself",
    "Context.send_prompt_list_changed": "leave it out: the server notifies clients itself",
    "Context.send_resource_list_changed": "use await ctx.notify_resources_changed()",
    "Context.send_tool_list_changed": "leave it out: the server notifies clients itself",
    "FastMCP.docket": "use tasks= with a store of funcmcp.tasks",
    "FastMCP.get_tasks": "use tasks= with a store of funcmcp.tasks",
    "FastMCP.remove_tool_transformation": "add and remove the tool itself",
    "FastMCP.transforms": "add each of them with mcp.add_transform",
    "FastMCP.wrap_transform": "use mcp.add_transform",
}
"""What to use for names that `funcmcp.compat` does not have, and has no advice for: names of imports and members."""

OTHER_MEANINGS = frozenset(
    {
        *("fastmcp.settings", "mcp.server.context", "mcp.server.lowlevel.server", "mcp.shared.progress"),
        *("mcp.client", "fastmcp.client"),
    }
)
"""Modules that define names that mean something else in `funcmcp.compat`."""
