"""Messages as middleware of FastMCP gets them, and the results of messages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

from funcmcp._compat.annotations import plain
from funcmcp._compat.content import ToolResult, block_of
from funcmcp._compat.editable import (
    Editable,
    EditableBlock,
    EditableParams,
    ListedPrompt,
    ListedResource,
    ListedTemplate,
    ListPage,
    PromptAnswer,
    ReadResult,
)
from funcmcp._compat.errors import ToolError, WrongArgumentsError, raise_as_fastmcp
from funcmcp._compat.listed_components import ListedTool
from funcmcp._compat.middleware import MalformedParams
from funcmcp._protocol import objects
from funcmcp._protocol.errors import MCPError, WrongArguments
from funcmcp._protocol.methods import FEATURE_LISTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._protocol.replies import Reply

_DEFINITIONS: dict[str, type[objects.Definition]] = {
    "tools": ListedTool,
    "resources": ListedResource,
    "resourceTemplates": ListedTemplate,
    "prompts": ListedPrompt,
}
"""The class of the definitions in a list, by the member of the result that has them."""

_REQUESTS = {
    "initialize": "InitializeRequest",
    "server/discover": "DiscoverRequest",
    "tools/list": "ListToolsRequest",
    "resources/list": "ListResourcesRequest",
    "resources/templates/list": "ListResourceTemplatesRequest",
    "prompts/list": "ListPromptsRequest",
}
"""The class of ``mcp.types`` for a request, by its method. Its message is the whole request."""

RESULTS = {"initialize": "InitializeResult", "server/discover": "DiscoverResult"}
"""The class of ``mcp.types`` for the result of a request, by its method."""


class CallToolRequestParams(EditableParams):
    """The parameters of `tools/call`."""


class ReadResourceRequestParams(EditableParams):
    """The parameters of `resources/read`."""


class GetPromptRequestParams(EditableParams):
    """The parameters of `prompts/get`."""


_PARAMS = {
    "tools/call": CallToolRequestParams,
    "resources/read": ReadResourceRequestParams,
    "prompts/get": GetPromptRequestParams,
}
"""The class of the parameters of a request, by its method. Its message is these parameters."""


_NAMES = {"tools/call": "name", "resources/read": "uri", "prompts/get": "name"}
"""The parameter that names the feature, by the method."""


def _model(name: str, wire: Mapping[str, Any]) -> Any:
    """Return an object in JSON form as a model of ``mcp.types``; None if the program has not loaded that module."""
    types = sys.modules.get("mcp.types") or sys.modules.get("mcp_types")
    model = getattr(types, name, None)
    if model is None:
        return None
    try:
        return model.model_validate(wire)
    except ValueError:  # a request that the server will refuse
        return None


def message_of(method: str, params: Mapping[str, Any]) -> Any:
    """Return the message of a request or a notification as FastMCP's middleware gets it."""
    if method in _PARAMS:
        if not _is_well_formed(method, params):
            return MalformedParams(params)
        return _PARAMS[method](**{"arguments": {}, **params})
    if method not in _REQUESTS:
        return dict(params)
    if not isinstance(params.get("_meta", {}), dict):
        return MalformedParams(params)
    request = _model(_REQUESTS[method], {"method": method, "params": params})
    if request is not None:
        return request
    client = params.get("clientInfo")
    members = {**params, "clientInfo": EditableParams(**client)} if isinstance(client, dict) else params
    return EditableParams(method=method, params=EditableParams(**members))


def _is_well_formed(method: str, params: Mapping[str, Any]) -> bool:
    is_named = isinstance(params.get(_NAMES[method]), str)
    return is_named and isinstance(params.get("arguments") or {}, dict)


def params_of(message: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a message that middleware may have changed.

    Args:
        message: The message.
        params: The parameters of the request.
    """
    if isinstance(message, dict):
        return dict(message)
    if isinstance(message, EditableParams) and "params" not in vars(message):
        changed = dict(params)
        for name, value in vars(message).items():
            if name in params or value not in ({}, None):
                changed[name] = plain(value)
        return changed
    members = getattr(message, "params", None)
    if members is None:
        return dict(params)
    if isinstance(members, EditableParams):
        return {name: _wire(value) for name, value in vars(members).items()}
    wire: dict[str, Any] = plain(members)
    return wire


def _wire(value: Any) -> Any:
    return dict(vars(value)) if isinstance(value, EditableParams) else plain(value)


class Result(Editable):
    """A result without a class of its own."""


def _editable(block: EditableBlock) -> Any:
    """Return a content block as a model of ``mcp.types`` if the program has loaded that module; else unchanged."""
    return block if "mcp.types" not in sys.modules and "mcp_types" not in sys.modules else block_of(block)


class ToolAnswer(ToolResult):
    """The result of a tool on its way back through middleware.

    Attributes:
        wire: The result in JSON form.
    """

    __slots__ = ("wire",)

    def __init__(self, blocks: Any, structured: Any, meta: Any, wire: dict[str, Any]) -> None:
        super().__init__([], structured, meta, is_error=wire.get("isError") is True)
        self.content = [_editable(block) for block in blocks]
        self.wire = wire


class CutResult(ToolResult):
    """A result of a tool whose text was cut. It has no structured content, whatever the schema of the tool is."""

    __slots__ = ()


def value_of(method: str, reply: Reply, failure: BaseException | None) -> Any:
    """Return an answer as FastMCP's middleware gets it; raise what the request failed with, caused by *failure*."""
    error = reply.message().get("error")
    if error is not None:
        raise_as_fastmcp(MCPError(error["code"], error["message"], error.get("data")), failure)
    result = reply.result() or {}
    if method == "tools/call" and "content" in result:
        call_result = objects.CallToolResult(result)
        if call_result.is_error and failure is not None:
            _raise_failure(failure, call_result.text)
        blocks = objects.objects_of(result["content"], EditableBlock)
        return ToolAnswer(blocks, call_result.structured_content, call_result.meta or None, result)
    if method in FEATURE_LISTS:
        member = FEATURE_LISTS[method]
        items: list[Any] = objects.objects_of(result.get(member, []), _DEFINITIONS[member])
        return ListPage(result.get("nextCursor"), items)
    if method == "resources/read":
        return ReadResult(result)
    if method == "prompts/get":
        return PromptAnswer(result)
    if method in RESULTS:
        return _model(RESULTS[method], result) or Result(result)
    return result


def model_in_json(value: Any) -> dict[str, Any] | None:
    """Return a model of ``mcp.types`` in JSON form; None for other values."""
    if isinstance(value, dict | list) or not hasattr(value, "model_dump"):
        return None
    wire: dict[str, Any] = plain(value)
    return wire


def _raise_failure(failure: BaseException, text: str) -> NoReturn:
    """Raise the exception of a tool: its own ToolError, or one that it has caused."""
    if isinstance(failure, ToolError) and str(failure) == text:
        raise failure
    if isinstance(failure, WrongArguments):
        raise WrongArgumentsError(text) from failure
    raise ToolError(text) from failure
