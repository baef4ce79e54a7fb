"""`ResourcesAsTools` and `PromptsAsTools`: resources and prompts for clients that have tools only.

How it works: a tool lists them, and a tool reads or gets one. Each template and each prompt also becomes a tool with
arguments of its own. All of these send requests to their own server (`_result_of`), so rights, middleware and
limits are those of the caller's own requests.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from funcmcp._adapters.asgi.application import ASGIApplication
from funcmcp._authoring.calling.unknown_arguments import unknown_arguments
from funcmcp._objects.mappings import without
from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import encode
from funcmcp._protocol.errors import MISSING_CLIENT_CAPABILITY, MCPError, ToolError, WrongArguments
from funcmcp._protocol.jsonrpc import Request
from funcmcp._protocol.methods import FEATURE_LISTS
from funcmcp._server.authorization import Guard, guard_for
from funcmcp._server.calls.rounds import NoRoundsError
from funcmcp._server.catalog.features import Prompt, RawResponse, ResourceTemplate, Tool
from funcmcp._server.catalog.transformed import Transform
from funcmcp._serving.composition import runtime_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping

    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.transformed import AnyFeature, Transformed
    from funcmcp._server.dispatch import Server

    Run = Callable[[RequestContext, dict[str, Any]], Coroutine[Any, Any, dict[str, Any] | RawResponse]]

MIME_TYPE = "io.funcmcp/mimeType"
"""The member of a text's ``_meta`` with the media type of the resource that it is, unless it is plain text."""

_READ_ONLY = {"readOnlyHint": True}
_OF_THE_CALL = ("name", "arguments", "uri", "cursor")
"""Members of the call's own params."""

_NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}


@public("funcmcp.transforms")
class ResourcesAsTools(Transform):
    """Offers resources as tools: ``mcp.add_transform(ResourcesAsTools(mcp))``.

    The tool ``list_resources`` lists resources and templates, and ``read_resource`` reads a URI. For each template
    there is also a tool with its variables as arguments, such as ``read_invoice`` for the template ``invoice``. The
    tools read what their caller may read.

    Args:
        server: The server that has the resources.
        templates: Whether each template becomes a tool.

    Raises:
        TypeError: The server is not an `MCPServer`.
    """

    output_schema: Mapping[str, Any] | None = None
    """The output schema of the tools that list and read; None for texts only."""

    def __init__(self, server: ASGIApplication, *, templates: bool = True) -> None:
        self._server = _server_of(server, "ResourcesAsTools")
        self._templates = templates

    def __call__(self, feature: AnyFeature) -> Transformed:
        """Return a template with its tool; other features unchanged."""
        if isinstance(feature, ResourceTemplate) and self._templates:
            return [feature, self._tool_of(feature)]
        return feature

    def features(self) -> Iterable[AnyFeature]:
        """Return the tools that list and read resources."""
        uri = {"type": "string", "description": "The URI of the resource."}
        schema = {"type": "object", "properties": {"uri": uri}, "required": ["uri"]}
        return [
            self._tool(
                "list_resources", "List all resources, and the templates of their URIs.", _NO_ARGUMENTS, self._list
            ),
            self._tool("read_resource", "Read the resource of a URI.", schema, self._read),
        ]

    def _tool(self, name: str, description: str, schema: Mapping[str, Any], run: Run) -> Tool:
        return _tool(name, description, schema, run, self.output_schema)

    def text_result(self, text: str) -> dict[str, Any]:
        """Return the result of a tool for a text."""
        return _text_result(text)

    def resource_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a tool for a ``ReadResourceResult``."""
        return _resource_result(result)

    async def _list(self, context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
        del arguments
        resources = await _items_of(self._server, context, "resources/list")
        templates = await _items_of(self._server, context, "resources/templates/list")
        listed = [{**_described(item), "uri": item["uri"], "mime_type": item.get("mimeType")} for item in resources]
        listed += [{**_described(item), "uri_template": item["uriTemplate"]} for item in templates]
        return self.text_result(json.dumps(listed, indent=2, ensure_ascii=False))

    async def _read(self, context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any] | RawResponse:
        if not isinstance(arguments["uri"], str):
            raise WrongArguments([("uri", "must be a string")])
        return await asked(self._server, context, "resources/read", {"uri": arguments["uri"]}, self.resource_result)

    def _tool_of(self, template: ResourceTemplate) -> Tool:
        async def read(context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any] | RawResponse:
            uri = template.template.expand({name: _as_text(value) for name, value in arguments.items()})
            return await asked(self._server, context, "resources/read", {"uri": uri}, _resource_result)

        def schema() -> Mapping[str, Any]:
            if template.input_schema is not None:
                return template.input_schema()
            variables = template.template.variables
            required = [name for name in variables if name not in template.template.optional]
            return _schema_of_texts({name: {} for name in variables}, required)

        return _tool_like(template, "read_{}", schema, read)


@public("funcmcp.transforms")
class PromptsAsTools(Transform):
    """Offers prompts as tools: ``mcp.add_transform(PromptsAsTools(mcp))``.

    The tool ``list_prompts`` lists the prompts, and ``get_prompt`` returns the messages of one. For each prompt there
    is also a tool with its arguments, such as ``prompt_greet`` for the prompt ``greet``. The tools get what their
    caller may get.

    Args:
        server: The server that has the prompts.
        prompts: Whether each prompt becomes a tool.

    Raises:
        TypeError: The server is not an `MCPServer`.
    """

    output_schema: Mapping[str, Any] | None = None
    """The output schema of the tools that list prompts and get messages; None for texts only."""

    def __init__(self, server: ASGIApplication, *, prompts: bool = True) -> None:
        self._server = _server_of(server, "PromptsAsTools")
        self._prompts = prompts

    def __call__(self, feature: AnyFeature) -> Transformed:
        """Return a prompt with its tool; other features unchanged."""
        if isinstance(feature, Prompt) and self._prompts:
            return [feature, self._tool_of(feature)]
        return feature

    def features(self) -> Iterable[AnyFeature]:
        """Return the tools that list prompts and get their messages."""
        name = {"type": "string", "description": "The name of the prompt."}
        values = {"type": "object", "description": "The arguments of the prompt by name."}
        schema = {"type": "object", "properties": {"name": name, "arguments": values}, "required": ["name"]}
        return [
            self._tool("list_prompts", "List all prompts and their arguments.", _NO_ARGUMENTS, self._list),
            self._tool("get_prompt", "Get the messages of a prompt.", schema, self._get),
        ]

    def _tool(self, name: str, description: str, schema: Mapping[str, Any], run: Run) -> Tool:
        return _tool(name, description, schema, run, self.output_schema)

    def text_result(self, text: str) -> dict[str, Any]:
        """Return the result of a tool for a text."""
        return _text_result(text)

    def _prompt_result(self, result: dict[str, Any]) -> dict[str, Any]:
        return self.text_result(_text_of_messages(result))

    async def _list(self, context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
        del arguments
        prompts = await _items_of(self._server, context, "prompts/list")
        listed = [{**_described(prompt), "arguments": prompt.get("arguments", [])} for prompt in prompts]
        return self.text_result(json.dumps(listed, indent=2, ensure_ascii=False))

    async def _get(self, context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any] | RawResponse:
        values = arguments.get("arguments") or {}
        if not isinstance(values, dict):
            raise WrongArguments([("arguments", "must be an object")])
        return await self._messages(context, arguments["name"], values)

    async def _messages(
        self, context: RequestContext, name: object, values: dict[str, Any]
    ) -> dict[str, Any] | RawResponse:
        texts = {argument: _as_json_text(value) for argument, value in values.items()}
        return await asked(
            self._server, context, "prompts/get", {"name": name, "arguments": texts}, self._prompt_result
        )

    def _tool_of(self, prompt: Prompt) -> Tool:
        async def get(context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any] | RawResponse:
            return await self._messages(context, prompt.name, arguments)

        def schema() -> Mapping[str, Any]:
            if prompt.input_schema is not None:
                return prompt.input_schema()
            arguments = prompt.describe().get("arguments", ())
            properties = {argument["name"]: argument for argument in arguments}
            return _schema_of_texts(
                properties, [argument["name"] for argument in arguments if argument.get("required")]
            )

        return _tool_like(prompt, "prompt_{}", schema, get)


def _server_of(server: object, name: str) -> Server:
    if not isinstance(server, ASGIApplication):
        raise TypeError(f"{name} takes the server that it is added to, not {type(server).__name__}: {name}(mcp).")
    return runtime_of(server).server


def _tool(
    name: str, description: str, schema: Mapping[str, Any], run: Run, output_schema: Mapping[str, Any] | None
) -> Tool:
    definition: dict[str, Any] = {"name": name, "title": name.replace("_", " ").capitalize()}
    definition["description"] = description
    if output_schema is not None:
        definition["outputSchema"] = output_schema
    return Tool(
        name=name,
        describe=lambda: {**definition, "inputSchema": schema, "annotations": _READ_ONLY},
        handler=_checked(lambda: schema, run),
        interactive=True,
    )


def _tool_like(
    feature: ResourceTemplate | Prompt, name: str, schema: Callable[[], Mapping[str, Any]], run: Run
) -> Tool:
    """Return a tool with the title, the description, the rights and the limits of another feature."""
    definition = feature.describe()
    tool_name = name.format(definition["name"])

    def describe() -> Mapping[str, Any]:
        members = {member: definition[member] for member in ("title", "description", "icons") if member in definition}
        return {"name": tool_name, **members, "inputSchema": schema(), "annotations": _READ_ONLY}

    return Tool(
        name=tool_name,
        describe=describe,
        handler=_checked(schema, run),
        interactive=feature.interactive,
        time_limit=feature.time_limit,
        access=feature.access,
        shown_errors=feature.shown_errors,
        tags=feature.tags,
        enabled=feature.enabled,
        version=feature.version,
    )


def _checked(schema: Callable[[], Mapping[str, Any]], run: Run) -> Run:
    """Return a handler that refuses unknown and missing arguments."""

    async def call(context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any] | RawResponse:
        definition = schema()
        missing = definition["properties"].keys() - arguments.keys()
        unknown = [name for name in arguments if name not in definition["properties"]]
        wrong = list(unknown_arguments(unknown, missing).lines) if unknown else []
        wrong += [(name, "is required") for name in definition.get("required", ()) if name not in arguments]
        if wrong:
            raise WrongArguments(wrong)
        return await run(context, arguments)

    return call


def _schema_of_texts(properties: Mapping[str, Mapping[str, Any]], required: list[str]) -> dict[str, Any]:
    schemas: dict[str, Any] = {}
    for name, argument in properties.items():
        members = {member: argument[member] for member in ("title", "description") if member in argument}
        schemas[name] = {"type": "string", **members}
    return {"type": "object", "properties": schemas, "required": required}


async def asked(
    server: Server,
    context: RequestContext,
    method: str,
    params: dict[str, Any],
    shaped: Callable[[dict[str, Any]], dict[str, Any]],
) -> dict[str, Any] | RawResponse:
    """Return the result of a request as that of a tool; raise ToolError if the request fails."""
    try:
        result = await _result_of(server, context, method, params)
    except MCPError as error:
        if error.code == MISSING_CLIENT_CAPABILITY or isinstance(context.error, NoRoundsError):
            raise
        raise ToolError(error.message) from error
    if result.get("resultType") == "input_required":
        return RawResponse({"jsonrpc": "2.0", "id": context.request.id, "result": result})
    return shaped(result)


def _resource_result(result: dict[str, Any]) -> dict[str, Any]:
    return {"content": [_block_of(contents) for contents in result["contents"]]}


def _block_of(contents: dict[str, Any]) -> dict[str, Any]:
    """Return the content block of a tool for contents of a resource."""
    mime_type = contents.get("mimeType", "")
    if "text" in contents:
        block = {"type": "text", "text": contents["text"]}
        if mime_type not in {"", "text/plain"}:
            block["_meta"] = {MIME_TYPE: mime_type}
        return block
    kind = mime_type.partition("/")[0]
    if kind in {"image", "audio"}:
        return {"type": kind, "data": contents["blob"], "mimeType": mime_type}
    return {"type": "resource", "resource": contents}


def _text_of_messages(result: dict[str, Any]) -> str:
    messages = []
    for message in result["messages"]:
        content = message["content"]
        messages.append({"role": message["role"], "content": content["text"] if content["type"] == "text" else content})
    return json.dumps({"messages": messages}, indent=2, ensure_ascii=False)


def _text_result(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def _described(definition: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": definition["name"], "description": definition.get("description")}


def _as_text(value: Any) -> Any:
    """Return the text of a variable in a URI; a list of texts for a list."""
    if isinstance(value, list):
        return [_as_json_text(item) for item in value]
    return None if value is None else _as_json_text(value)


def _as_json_text(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()


async def _result_of(server: Server, context: RequestContext, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request of a call's caller, with the caller's rights and through the middleware.

    Questions to the client are those of the call, so the result may be an InputRequiredResult.

    Raises:
        MCPError: The caller may not send the request, or it failed.
    """
    request = Request(context.request.id, method, {**without(context.request.params, *_OF_THE_CALL), **params})
    routed = await server.resolve(server.routes.route(request), context.principal, http=context.http)
    guard = guard_for(context, server.guard)
    if server.guard is None and context.principal is not None:
        guard = Guard(server.catalog)  # a server that mounts this one has authenticated the caller
    refusal = None if guard is None else await guard.check(routed, context.principal)
    if refusal is not None:
        raise refusal.error()
    inner = copy.copy(context)
    inner.outer = context
    inner.request = request
    inner.routed = routed
    message = (await server.answer(inner)).message()
    error = message.get("error")
    if error is not None:
        raise MCPError(error["code"], error["message"], error.get("data"))
    result: dict[str, Any] = message["result"]
    return result


async def _items_of(server: Server, context: RequestContext, method: str) -> list[dict[str, Any]]:
    """Return the items of all pages of a list, as the caller of a call gets them."""
    items: list[dict[str, Any]] = []
    params: dict[str, Any] = {}
    while True:
        result = await _result_of(server, context, method, params)
        items += result[FEATURE_LISTS[method]]
        if "nextCursor" not in result:
            return items
        params = {"cursor": result["nextCursor"]}
