"""Runs of a component outside of its server, as its methods ``run``, ``render`` and ``read`` do.

How it works: a server that exists only for the run has the component's function as its one tool. So the arguments are
converted and checked, dependencies are resolved and plain functions run in a thread, as they are in a request. A
wrapper around the function stores the value that it returns, or its exception.
"""

from __future__ import annotations

from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.results.content import base64
from funcmcp._authoring.signatures.partials import is_async
from funcmcp._authoring.signatures.signature import Signature
from funcmcp._compat.annotations import plain
from funcmcp._compat.components import Outcome, Tool
from funcmcp._compat.context import context_variable
from funcmcp._compat.errors import McpError, ValidationError
from funcmcp._compat.functions import adapted, collected, set_signature
from funcmcp._compat.server import FastMCP
from funcmcp._compat.tool_output import finished
from funcmcp._compat.tool_registration import output_of, timeout_error
from funcmcp._objects.mappings import only
from funcmcp._protocol.objects import CallToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from funcmcp._compat.context import Context
    from funcmcp._server.calls.context import RequestContext

_OPTIONS = ("exclude_args", "tags", "timeout")
"""Options of a tool that change what a run returns."""


_TIMEOUT = -32000
"""The code of the error of a run that took too long."""


class _DirectServer(FastMCP):
    """The server of one run. Its function has the context that the caller chose, or that of the running request."""

    context: Context | None = None

    @contextmanager
    def _active_context(self, request: RequestContext) -> Iterator[None]:
        outer = context_variable.get()
        if self.context is None and outer is None:
            with super()._active_context(request):
                yield
            return
        if self.context is not None:
            context_variable.set(self.context)
        try:
            yield
        finally:
            context_variable.set(outer)


class _Recorder:
    """Stores what a function returned or raised."""

    def __init__(self, function: Callable[..., Any], *, in_thread: bool) -> None:
        self.value: Any = None
        self.error: Exception | None = None
        self.has_run = False
        function = finished(function, self._store, in_thread=in_thread)
        self.function = self._asynchronous(function) if is_async(function) else self._plain(function)
        set_signature(self.function, function, Signature(function).try_hints(), ())

    def _store(self, value: Any) -> None:
        self.value = value

    def _plain(self, function: Callable[..., Any]) -> Any:
        def call(**arguments: Any) -> Any:
            self.has_run = True
            try:
                return self._stored(function(**arguments))
            except Exception as error:  # noqa: BLE001 - `run` raises it
                self.error = error
                return None

        return call

    def _stored(self, value: Any) -> Any:
        return None if value is None else self._awaited(value)

    async def _awaited(self, value: Any) -> None:
        try:
            await value
        except Exception as error:  # noqa: BLE001 - `run` raises it
            self.error = error

    def _asynchronous(self, function: Callable[..., Any]) -> Any:
        async def call(**arguments: Any) -> Any:
            self.has_run = True
            await self._awaited(function(**arguments))

        return call


async def run(
    component: Any, arguments: Mapping[str, Any] | None, *, context: Context | None = None, has_result: bool = False
) -> Outcome:
    """Call the function of a component, and return what it returned.

    Args:
        component: The component.
        arguments: The arguments of the function. Values are converted, as those of FastMCP's clients are.
        context: The context that the function gets. By default it is that of the request that runs now.
        has_result: Whether the value is made into a result of a tool.

    Raises:
        Exception: What the function raised.
        ValidationError: The arguments are not those of the function.
    """
    server = _DirectServer("direct", show_errors=True)
    server.context = context
    recorder = _Recorder(component.fn, in_thread=component.options.get("run_in_thread") is not False)
    options = only(component.options, _OPTIONS) if component.kind == "tool" else {}
    tool = Tool(recorder.function, component.tool_name, **options, output_schema=None)
    tool.takes_any_arguments = getattr(component, "takes_any_arguments", False)
    server.add_tool(tool)
    result = await server.direct_result(component.tool_name, _without_bytes(dict(arguments or {})))
    if recorder.error is not None:
        raise recorder.error
    if result.is_error and tool.timeout is not None and result.text == timeout_error(tool.name, tool.timeout):
        raise McpError(_TIMEOUT, result.text)
    if result.is_error:
        raise ValidationError(result.text)
    if has_result:
        result = _result_of(component, recorder.value)
    return Outcome(recorder.value, result)


def _without_bytes(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with bytes in the form in which clients send them. Other values are the same objects."""
    return {name: base64(value) if isinstance(value, bytes) else value for name, value in arguments.items()}


def _result_of(component: Any, value: Any) -> CallToolResult:
    """Return the result of a tool for a value that its function has returned."""
    if component.marks_results:
        return result_of(component, value)
    from funcmcp._compat.sdk_schemas import result_form  # noqa: PLC0415 - loads pydantic

    return CallToolResult(result_form(component.fn, component.options.get("structured_output")).convert(value).wire)


def definition_of(component: Any) -> Mapping[str, Any]:
    """Return the definition of a component that is not registered."""
    server = _DirectServer("direct")
    registered = copy(component)
    registered.switches = []
    server.register(registered)
    definition: Mapping[str, Any] = registered.definition
    return definition


def input_schema_of(component: Any) -> dict[str, Any]:
    """Return the JSON schema of the arguments of a component's function."""
    tool = Tool(collected(component.fn), component.tool_name, output_schema=None)
    schema: dict[str, Any] = definition_of(tool)["inputSchema"]
    return schema


def parameters_of(tool: Any) -> dict[str, Any]:
    """Return the input schema of a tool as FastMCP has it; funcmcp's own if pydantic can't describe an argument."""
    handwritten: dict[str, Any] | None = tool.options.get("input_schema")
    if handwritten is not None:
        return handwritten
    schema = None
    if tool.marks_results:
        from funcmcp._compat.input_schemas import input_schema_of as schema_of  # noqa: PLC0415 - loads pydantic

        schema = schema_of(adapted(tool.fn, exclude=tool.options.get("exclude_args") or (), has_schema=False))
    if schema is None:
        schema = tool.definition["inputSchema"]
    return schema


def output_schema_of(tool: Any) -> dict[str, Any] | None:
    """Return the output schema of a tool, with references."""
    if not tool.marks_results:
        schema: dict[str, Any] | None = tool.definition.get("outputSchema")
        return schema
    return output_of(tool).schema


def result_of(tool: Any, value: Any) -> CallToolResult:
    """Return the result of a tool for a value that its function would return."""
    return CallToolResult(output_of(tool).result(value).wire)


def dump_of(tool: Any) -> dict[str, Any]:
    """Return the attributes of a tool with the names that FastMCP gives them."""
    return {
        "name": tool.name,
        "version": tool.version,
        "title": tool.title,
        "description": tool.description,
        "icons": tool.icons,
        "tags": tool.tags,
        "meta": tool.meta,
        "task_config": dict(vars(tool.task_config)),
        "parameters": tool.parameters,
        "output_schema": tool.output_schema,
        "annotations": tool.annotations,
        "execution": tool.options.get("execution"),
        "timeout": tool.timeout,
        "fn": tool.fn,
        "run_in_thread": tool.options.get("run_in_thread") is not False,
    }


def tool_definition_of(tool: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of a tool in JSON form, before members are changed.

    Args:
        tool: The tool.
        changes: The changed members, of which the title follows the name and the annotations.
    """
    definition = dict(tool.definition)
    if not tool.marks_results:
        return definition
    annotations = plain(changes.get("annotations", tool.annotations)) or {}
    name = changes.get("name", tool.name)
    title = tool.title or annotations.get("title") or name.replace("_", " ").replace("-", " ").title()
    execution = plain(tool.options.get("execution"))
    if execution is not None:
        definition["execution"] = execution
    return {**definition, "title": title, "inputSchema": tool.parameters}
