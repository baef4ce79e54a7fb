"""Names of FastMCP and the official SDK that funcmcp does not have, and what it has in their place.

Errors look names up here. The module is loaded by the first such error.
"""

from __future__ import annotations

IMPORTS = {
    "FastMCP": "It is called MCPServer here. funcmcp.compat has FastMCP for servers that move here.",
    "Image": "It is in funcmcp.content.",
    "UI": "It is in funcmcp.content.",
    "UIResource": "It is in funcmcp.content.",
    "Client": "It is in funcmcp.client.",
}
"""Names that are imported from `funcmcp`: a sentence for each."""

SERVER_ATTRIBUTES = {
    "from_fastapi": "mcp.tools_from_asgi(app)",
    "as_proxy": "mcp.mount(funcmcp.upstreams.Upstream(target))",
    "delete": "@mcp.custom_route(path, methods=['DELETE'])",
    "get": "@mcp.custom_route(path)",
    "get_context": "a parameter of the type funcmcp.Context",
    "get_prompt": "await mcp.list_prompts()",
    "get_tool": "await mcp.list_tools()",
    "include_router": "mcp.mount(server, prefix=...)",
    "middleware": "MCPServer(middleware=[function]), or mcp.add_middleware(function)",
    "on_event": "@mcp.add_lifespan",
    "post": "@mcp.custom_route(path, methods=['POST'])",
    "get_prompts": "await mcp.list_prompts()",
    "get_resource_templates": "await mcp.list_resource_templates()",
    "get_resources": "await mcp.list_resources()",
    "get_tools": "await mcp.list_tools()",
    "import_server": "mcp.mount(server, prefix=...)",
    "route": "@mcp.custom_route(path)",
    "run_http_async": 'await mcp.run_async("http")',
    "run_sse_async": 'await mcp.run_async("sse")',
    "run_stdio_async": 'await mcp.run_async("stdio")',
    "run_streamable_http_async": 'await mcp.run_async("http")',
    "session_manager": "mcp.lifespan in the lifespan of the application that mounts the server",
    "settings": "the options of MCPServer, and mcp.run(host=..., port=...)",
    "add_tool": "mcp.tool(function)",
    "add_tool_transformation": "mcp.add_transform(funcmcp.transforms.ToolTransform({name: ToolChange(...)}))",
    "add_prompt": "mcp.prompt(function)",
    "add_resource": "@mcp.resource(uri)",
    "http_app": "mcp itself, which is an ASGI application",
    "streamable_http_app": "mcp itself, which is an ASGI application",
    "sse_app": "MCPServer(http=HTTPOptions(sse=...)), and mcp itself, which is an ASGI application",
}
"""Attributes of servers, and what to use."""

CONTEXT_ATTRIBUTES = {
    "access_token": "context.principal",
    "client_capabilities": "context.can(capability)",
    "close_sse_stream": "await context.close_stream()",
    "delete_state": "await context.state.delete(name)",
    "disable_components": "await context.disable(names)",
    "enable_components": "await context.enable(names)",
    "critical": "await context.log('critical', data)",
    "fastmcp": "the variable of the server",
    "get_http_request": "context.http_request",
    "get_state": "await context.state.get(name)",
    "headers": "context.http_request.headers",
    "notice": "await context.log('notice', data)",
    "read_resource": "await mcp.read_resource(uri)",
    "set_state": "await context.state.set(name, value)",
    "warn": "await context.warning(data)",
    "request": "context.http_request, or a service of mcp.services for what the application keeps in app.state",
    "request_context": "context.lifespan_context, context.meta, context.http_request or context.client_info",
    "client_id": "context.principal",
    "notify_resource_updated": "mcp.notify_resource_updated(uri)",
    "notify_resources_changed": "mcp.notify_resources_changed()",
    "send_resource_list_changed": "mcp.notify_resources_changed()",
    "session": "context.session_id, context.sample(messages) or the other methods of context",
    "user": "context.principal",
}
"""Attributes of contexts, and what to use."""

FEATURE_OPTIONS = {
    "annotations": "Write read_only=, destructive=, idempotent=, open_world= and title=, which become ToolAnnotations.",
    "app": "Write ui=.",
    "auth": "Write scopes= or authorize=.",
    "dependencies": "Register services with mcp.services; functions get them by the types of their parameters.",
    "mcp_component_fn": "Leave it out, and change the tools with mcp.add_transform(function).",
    "mcp_names": "Write names=.",
    "route_map_fn": "Write select= with a function that returns whether an operation becomes a tool.",
    "route_maps": "Write select=. Operations become tools or nothing.",
    "exclude_args": "Register a service for the type of the parameter; it is then not an argument of the tool.",
    "run_in_thread": "Leave it out: functions that are not async run in worker threads.",
    "serializer": "Return content blocks of funcmcp.content.",
    "structured_output": "Leave it out: the return annotation decides. A function without one has no output schema.",
}
"""Options of tools, resources and prompts: a sentence for each."""

SERVER_OPTIONS = {
    "bus": "sessions=SignedSessions(bus=...) or a store that has a bus, such as RedisSessions",
    "host": "mcp.run(host=...)",
    "keys": "sessions=SignedSessions(keys=...), or keys= of another store",
    "lifespan": "@mcp.add_lifespan",
    "list_page_size": "protocol=ProtocolOptions(page_size=...)",
    "mask_error_details": "show_errors=",
    "message_path": "http=HTTPOptions(sse=...)",
    "mount_path": "Starlette(routes=[Mount(path, mcp)], lifespan=mcp.lifespan)",
    "port": "mcp.run(port=...)",
    "session_state_store": "state=",
    "sse_path": "http=HTTPOptions(sse=...)",
    "stateless_http": "sessions=None",
    "streamable_http_path": "http=HTTPOptions(path=...)",
    "strict_input_validation": "lax=",
    "token_verifier": "auth=",
    "transport": "mcp.run(...)",
    "transport_security": "http=HTTPOptions(allowed_hosts=..., allowed_origins=...)",
}
"""Options of servers, and what to use."""

SERVER_OPTIONS_WITHOUT_COUNTERPART = {
    "custom_route": "Write @mcp.custom_route(path) above a function.",
    "debug": "Run the server with funcmcp run --log-level debug, or set the level of the logger 'funcmcp'.",
    "dependencies": "Write them into pyproject.toml.",
    "event_store": "sessions='memory' and RedisSessions resume broken streams without one.",
    "exclude_tags": "Call mcp.disable(tags=...).",
    "include_tags": "Call mcp.enable(tags=..., only=True).",
    "json_response": "Leave it out: a response is JSON unless the tool sends other messages before it.",
    "log_level": "Run the server with funcmcp run --log-level, or set the level of the logger 'funcmcp'.",
    "mount": "Call mcp.mount(server, prefix=...).",
    "on_duplicate": "Leave it out: a name that is taken is an error. Remove the other feature first.",
    "on_duplicate_prompts": "Leave it out: a name that is taken is an error. Call mcp.remove_prompt first.",
    "on_duplicate_resources": "Leave it out: a URI that is taken is an error. Call mcp.remove_resource first.",
    "on_duplicate_tools": "Leave it out: a name that is taken is an error. Call mcp.remove_tool first.",
    "prompts": "Call mcp.prompt(function) for each of them.",
    "providers": "Call mcp.add_provider(provider) for each of them.",
    "resources": "Write @mcp.resource(uri) above each of them.",
    "tags": "Pass tags= to single tools, resources and prompts.",
    "tools": "Call mcp.tool(function) for each of them.",
    "transforms": "Call mcp.add_transform(transform) for each of them.",
    "warn_on_duplicate_prompts": "Leave it out: a name that is taken is an error.",
    "warn_on_duplicate_resources": "Leave it out: a URI that is taken is an error.",
    "warn_on_duplicate_tools": "Leave it out: a name that is taken is an error.",
}
"""Options of servers that have no counterpart among the options: a sentence for each."""

METHOD_OPTIONS = {
    "add_provider": {"namespace": "Write prefix=."},
    "mount": {
        "as_proxy": "Leave it out: features are called directly, with their own middleware and lifespans.",
        "namespace": "Write prefix=.",
        "tool_names": "Write transforms=[funcmcp.transforms.Rename({...})].",
    },
    "run": {
        "json_response": "Leave it out: a response is JSON unless the tool sends other messages before it.",
        "log_level": "Run the server with funcmcp run --log-level, or set the level of the logger 'funcmcp'.",
        "middleware": "Serve the application around the server with an ASGI server, such as uvicorn.",
        "mount_path": "Write Starlette(routes=[Mount(path, mcp)], lifespan=mcp.lifespan).",
        "path": "Write MCPServer(..., http=HTTPOptions(path=...)).",
        "show_banner": "Leave it out: there is no banner.",
        "sse_path": "Write MCPServer(..., http=HTTPOptions(sse=...)).",
        "stateless": "Write MCPServer(..., sessions=None).",
        "stateless_http": "Write MCPServer(..., sessions=None).",
        "streamable_http_path": "Write MCPServer(..., http=HTTPOptions(path=...)).",
        "transport_security": "Write MCPServer(..., http=HTTPOptions(allowed_hosts=..., allowed_origins=...)).",
        "uvicorn_config": "Run the server with the options of funcmcp run, or with uvicorn server:mcp.",
    },
}
"""Options of methods of servers, by the method: a sentence for each."""
