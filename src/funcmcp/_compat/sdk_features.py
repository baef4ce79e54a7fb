"""Components of the official SDK's `MCPServer` as features of funcmcp: definitions, results and errors as there."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.features.tools import make_tool
from funcmcp._authoring.signatures.partials import signature_of
from funcmcp._authoring.signatures.signature import Signature
from funcmcp._compat.annotations import options_of_hints, plain
from funcmcp._compat.content import ResourceContent
from funcmcp._compat.context import is_context
from funcmcp._compat.dependencies import dependency_of
from funcmcp._compat.functions import adapted, collected, with_result
from funcmcp._compat.input_required import is_input_required_type
from funcmcp._compat.input_rounds import answering_input, raise_for_input
from funcmcp._compat.options import icons_of
from funcmcp._compat.resolvers import Resolve, check_resolvers
from funcmcp._compat.sdk_errors import failing_as, prompt_failure, resource_failure, tool_failure
from funcmcp._compat.task_config import task_option
from funcmcp._objects.mappings import without, without_none
from funcmcp._protocol.errors import InvalidParams
from funcmcp._server.catalog.features import EncodedResult, ResourceTemplate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from funcmcp._authoring.calling.services import Services
    from funcmcp._compat.components import Component
    from funcmcp._compat.dependencies import Dependency
    from funcmcp._compat.sdk_schemas import ResultForm
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import Prompt, Tool

    Report: TypeAlias = Callable[[Exception, Exception, RequestContext], None]


def make_sdk_tool(
    component: Component, options: dict[str, Any], services: Services, report: Report, *, tasks: bool
) -> Tool:
    """Return a tool with the schemas and the results of the official SDK.

    Args:
        component: The tool as it was registered.
        options: Its options without those that change nothing here.
        services: The services of the server.
        report: Gets the errors of calls.
        tasks: Whether calls may become tasks, unless the options say so.

    Raises:
        InvalidSignature: The function can't be a tool.
    """
    from funcmcp._compat.sdk_schemas import (  # noqa: PLC0415 - loads pydantic
        HEADER,
        arguments_schema,
        mirrored_arguments,
        result_form,
    )

    function, name = component.fn, component.name
    check_resolvers(function, name)
    chosen = {**options_of_hints(options.pop("annotations", None)), **options}
    chosen.update(task_option(chosen.pop("task", None), name, default=tasks))
    form = result_form(function, chosen.pop("structured_output", None))
    hidden = hidden_parameters(function)
    asks = any(isinstance(mark, Resolve) for mark in hidden.values())
    exclude = chosen.pop("exclude_args", None) or ()
    chosen.pop("output_schema", None)
    chosen.pop("run_in_thread", None)
    convert = _only_resolvers(form) if asks else form.convert
    converting = with_result(adapted(collected(function), exclude=exclude, has_schema=False), None, convert)
    tool = make_tool(converting, _common(component, chosen), services)
    schema_of = functools.cache(functools.partial(arguments_schema, function, {*hidden, *exclude}))
    mirrored = tool.mirrored
    if HEADER in str(Signature(function).try_hints()):
        mirrored = mirrored_arguments(name, schema_of() or {})
    return replace(
        tool,
        interactive=True,
        mirrored=mirrored,
        describe=functools.cache(lambda: _tool_definition(tool.describe(), component, schema_of(), form)),
        handler=failing_as(answering_input(tool.handler), lambda error, *_: tool_failure(error, name), report),
    )


def hidden_parameters(function: Callable[..., Any]) -> dict[str, Dependency | None]:
    """Return the parameters of a function that are not arguments: contexts, and what is resolved with its mark."""
    hints = Signature(function).try_hints()
    hidden: dict[str, Dependency | None] = {}
    for parameter in signature_of(function).parameters.values():
        mark = dependency_of(parameter.name, hints.get(parameter.name), parameter.default)
        if mark is not None or is_context(hints.get(parameter.name)):
            hidden[parameter.name] = mark
    return hidden


def _only_resolvers(form: ResultForm) -> Callable[[Any], Any]:
    """Return how a tool writes results whose resolvers ask the client, so that its function must not."""

    def convert(value: Any) -> Any:
        if is_input_required_type(type(value)):
            raise RuntimeError(
                "The tool returned an InputRequiredResult, but its parameters use Resolve(...). Either its resolvers "
                "ask the client, or its function does."
            )
        return form.convert(value)

    return convert


def _common(component: Component, options: dict[str, Any]) -> Any:
    chosen = without_none(without(options, "title"))
    if "icons" in chosen:
        chosen["icons"] = icons_of(chosen["icons"])
    return {"timeout": None, **chosen, "name": component.name, "output_schema": None}


def _tool_definition(
    definition: Mapping[str, Any], component: Component, schema: dict[str, Any] | None, form: ResultForm
) -> dict[str, Any]:
    changed = described(definition, component)
    changed["inputSchema"] = schema or definition["inputSchema"]
    if form.schema is not None:
        changed["outputSchema"] = form.schema
    return changed


def described(definition: Mapping[str, Any], component: Component) -> dict[str, Any]:
    """Return a definition with the title, the description and the annotations that the author has written."""
    changed = {
        **definition,
        "title": component.title,
        "description": written_description(component),
        "annotations": plain(component.annotations),
    }
    return without_none(changed)


def written_description(component: Component) -> str | None:
    """Return the description of a component: the option, or the whole docstring with its indentation.

    Its section about arguments stays: the SDK's schemas don't describe them.
    """
    if component.kind == "resource" and not getattr(component, "has_function", False):
        return component.description
    return component.options.get("description") or component.fn.__doc__ or ""


def sdk_prompt(prompt: Prompt, component: Component, report: Report) -> Prompt:
    """Return a prompt with the definition and the errors of the official SDK."""

    @functools.cache
    def describe() -> dict[str, Any]:
        return {"arguments": [], **without(described(prompt.describe(), component), "annotations")}

    async def handle(request: RequestContext, arguments: dict[str, str]) -> Any:
        required = {item["name"] for item in describe().get("arguments", ()) if item.get("required")}
        missing = required - arguments.keys()
        if missing:
            raise InvalidParams(f"Missing required arguments: {missing}")
        return await prompt.handler(request, arguments)

    async def describing(request: RequestContext, arguments: dict[str, str]) -> Any:
        result = await handle(request, arguments)
        if written_description(component) or not isinstance(result, EncodedResult):
            return result
        return EncodedResult(b'{"description":"",' + result.text[1:])

    handler = failing_as(describing, lambda error, *_: prompt_failure(error, prompt.name), report)
    return replace(prompt, describe=describe, handler=handler)


def contents_writer(component: Any) -> Callable[[Any], Any]:
    """Return the function that writes what a resource or a template returns: texts, bytes, and other values as JSON."""

    def write(value: Any) -> Any:
        raise_for_input(value)
        if not isinstance(value, str | bytes):
            from pydantic_core import to_json  # noqa: PLC0415 - few resources return objects

            value = to_json(value, fallback=str, indent=2).decode()
        return ResourceContent(value, component.mime_type, component.meta)

    return write


def sdk_resource(feature: Any, component: Any, report: Report) -> Any:
    """Return a resource or a template with the definition and the errors of the official SDK."""
    is_template = isinstance(feature, ResourceTemplate)

    @functools.cache
    def describe() -> dict[str, Any]:
        return {**described(feature.describe(), component), "mimeType": component.mime_type}

    def failure_of(error: Exception, uri: str, *_: Any) -> Exception:
        return resource_failure(error, uri, is_template=is_template)

    return replace(feature, describe=describe, handler=failing_as(feature.handler, failure_of, report))
