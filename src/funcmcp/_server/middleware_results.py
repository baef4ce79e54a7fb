"""Results that middleware returns in place of a reply, in the form of the client's revision.

How it works: the author's value becomes a dict, which gets the members that the author may leave out: ``content`` of a
tool's result, and what 2026-07-28 puts around each result. Then its shape is checked (`result_shapes`), and structured
content against the output schema that the client has seen, because clients reject the whole result otherwise. Questions
to the client and tasks have shapes of their own, which are not checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from funcmcp._objects.mappings import without, without_none
from funcmcp._protocol import adaptation
from funcmcp._protocol.codec import encode
from funcmcp._protocol.completion import Completion
from funcmcp._protocol.result_shapes import RESULT_SHAPES, shape_error
from funcmcp._server.catalog.features import Tool
from funcmcp._server.handlers.completions import completion_result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.results import Results


_OBJECTS = {
    "tools/call": "a ToolResult, a content block",
    "resources/read": "Contents",
    "prompts/get": "a PromptResult, a Message",
    "completion/complete": "a Completion",
}
"""The objects that middleware may return by method."""

_MEMBERS_BY_ATTRIBUTE = {"structured_content": "structuredContent", "is_error": "isError"}
"""Members of a tool's result by the attributes of ToolResult."""


class AuthoredValues(Protocol):
    """Reads objects of authors, and checks structured content against their schemas."""

    def result_of(self, value: object, context: RequestContext) -> dict[str, Any] | None:
        """Return the result for an object such as a ToolResult; None for an object of another class."""

    def schema_error(self, tool: str, schema: Mapping[str, Any], value: object) -> str | None:
        """Return why structured content does not fit an output schema; None if it fits."""

    def schema_faults(self, tool: str, schema: Mapping[str, Any], value: object) -> list[tuple[str | int, ...]]:
        """Return the paths of the parts of structured content that an output schema objects to."""


class MiddlewareResults:
    """Completes and checks the results of middleware.

    Args:
        results: Adds the members that every result of a revision has.
        values: Reads the classes of authors, and checks structured content. None: results are dicts, and structured
            content is not checked.
    """

    def __init__(self, results: Results, values: AuthoredValues | None) -> None:
        self._results = results
        self._values = values

    def complete(self, value: object, context: RequestContext) -> dict[str, Any]:
        """Return the complete result for what a middleware returned.

        Raises:
            TypeError: The value can't be a result of the request's method.
            ValueError: A member is missing or wrong.
        """
        method = context.request.method
        revision = context.client.revision
        result = without_none(self._as_dict(value, context))
        if result.get("resultType", "complete") != "complete" or "task" in result:
            return self._results.complete(result, revision)
        if method == "tools/call":
            _check_names(result)
            result.setdefault("content", _content_for(result))
        error = shape_error(method, result)
        if error is not None:
            raise ValueError(f"{error}.")
        return self._results.complete(self._shaped(result, context, revision), revision)

    def _as_dict(self, value: object, context: RequestContext) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        if isinstance(value, Completion) and context.request.method == "completion/complete":
            return completion_result(value)
        result = None if self._values is None else self._values.result_of(value, context)
        if result is None:
            objects = _OBJECTS.get(context.request.method)
            alternatives = "the Reply of call_next, or a result as a dict"
            if objects is not None:
                alternatives = f"the Reply of call_next, {objects}, or a result as a dict"
            raise TypeError(f"{type(value).__name__} is not a result. Return {alternatives}.")
        return result

    def _shaped(self, result: dict[str, Any], context: RequestContext, revision: Revision) -> dict[str, Any]:
        """Return a result of the right shape in the form of the revision."""
        method = context.request.method
        if method == "tools/call":
            return adaptation.tool_result(self._with_valid_structure(result, context, revision), revision)
        if method == "prompts/get":
            return adaptation.prompt_result(result, revision)
        shape = RESULT_SHAPES.get(method)
        if shape is None or shape.cached_as is None:
            return result
        ttl = self._results.list_ttl if shape.cached_as == "list" else self._results.read_ttl
        return {**self._results.cacheable({}, revision, ttl, "private"), **result}

    def _with_valid_structure(
        self, result: dict[str, Any], context: RequestContext, revision: Revision
    ) -> dict[str, Any]:
        """Return a tool's result; raise ValueError if the structured content does not fit the tool's output schema.

        The structured content of an error is left out if it does not fit, as in results of tools.
        """
        tool = context.feature
        if self._values is None or not isinstance(tool, Tool) or not tool.checks_results:
            return result
        is_error = result.get("isError") is True
        schema = adaptation.output_schema(tool.describe(), revision)
        if schema is None or (is_error and "structuredContent" not in result):
            return result
        if "structuredContent" not in result:
            raise ValueError(
                f"structuredContent is missing, and {tool.name} has an output schema. Add it, or set isError to true."
            )
        error = self._values.schema_error(tool.name, schema, result["structuredContent"])
        if error is None:
            return result
        if is_error:
            return without(result, "structuredContent")
        raise ValueError(f"structuredContent does not fit the output schema of {tool.name}: {error}.")


def _check_names(result: Mapping[str, Any]) -> None:
    """Raise ValueError if a tool's result has a member with the name of an attribute of ToolResult."""
    for attribute, member in _MEMBERS_BY_ATTRIBUTE.items():
        if attribute in result:
            raise ValueError(f"A result has no member {attribute}. Did you mean {member}?")


def _content_for(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the content of a result without any: its structured content as a text, if it has that."""
    if "structuredContent" not in result:
        return []
    return [{"type": "text", "text": encode(result["structuredContent"]).decode()}]
