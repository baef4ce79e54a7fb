"""The features that clients get of the tools, resources and prompts of `funcmcp.compat`."""

from __future__ import annotations

import re
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.features.prompts import make_prompt
from funcmcp._authoring.features.resources import checked_uri, make_resource
from funcmcp._compat.annotations import options_of_hints, plain
from funcmcp._compat.components import result_meta
from funcmcp._compat.failures import with_results_and_errors
from funcmcp._compat.functions import adapted, returns_contents, with_joined_paths, with_result
from funcmcp._compat.input_rounds import asking
from funcmcp._compat.options import icons_of
from funcmcp._compat.prompt_functions import converting, with_required_arguments
from funcmcp._compat.resolvers import check_resolvers
from funcmcp._compat.resource_functions import checked_reads
from funcmcp._compat.sdk_errors import log_crash
from funcmcp._compat.sdk_features import make_sdk_tool
from funcmcp._compat.security import screening_of
from funcmcp._compat.task_config import task_option
from funcmcp._compat.tool_registration import make_marked_tool
from funcmcp._objects.mappings import without_none
from funcmcp._server.catalog import features

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._compat.components import Component

_PATHS = re.compile(r"\{(\w+)\*\}")
"""The variables of a URI template that stand for all remaining parts of a path."""


def made_feature(server: Any, component: Component, options: dict[str, Any]) -> Any:
    """Return the feature of a component of a server.

    Args:
        server: The `FastMCP` server.
        component: The component.
        options: Its options without those that change nothing here.
    """
    feature = _MAKERS[component.kind](server, component, options)
    kind = None if server.is_of_sdk else component.kind
    return replace(feature, handler=with_results_and_errors(kind, feature.handler))


def _make_tool(server: Any, component: Any, options: dict[str, Any]) -> Any:
    if not component.marks_results:
        return make_sdk_tool(component, options, server.services, log_crash, tasks=server.task_default)
    check_resolvers(component.fn, component.name)
    hints = options_of_hints(options.pop("annotations", None))
    task = task_option(options.pop("task", None), component.name, default=server.task_default)
    chosen: dict[str, Any] = {**hints, **options, **task}
    return replace(make_marked_tool(component, _common(component, chosen), server.services), interactive=True)


def _make_prompt(server: Any, component: Any, options: dict[str, Any]) -> Any:
    options.pop("annotations", None)
    if not component.has_function:
        return _make_own_prompt(server, component, options)
    function = converting(component.fn) if component.describes_arguments else component.fn
    function = with_result(adapted(function), None, asking(component.convert_result))
    prompt = make_prompt(function, _common(component, options), server.services)
    if component.describes_arguments:
        handler = with_required_arguments(component, prompt.handler)
        prompt = replace(prompt, describe=component.described(prompt.describe), handler=handler)
    return replace(prompt, interactive=True)


def _make_own_prompt(server: Any, component: Any, options: dict[str, Any]) -> Any:
    """Return the feature of a subclass of ``Prompt`` with a method ``render``, which gets all arguments as one dict."""
    rendering: ContextVar[dict[str, Any]] = ContextVar("rendering")

    async def render() -> Any:
        return await component.render(rendering.get())

    prompt = make_prompt(
        with_result(render, None, asking(component.convert_result)), _common(component, options), server.services
    )

    async def handle(context: Any, arguments: dict[str, str]) -> Any:
        rendering.set(dict(arguments))
        return await prompt.handler(context, {})

    handler = with_required_arguments(component, handle)
    return replace(prompt, describe=component.described(prompt.describe), handler=handler, interactive=True)


def _make_resource(server: Any, component: Any, options: dict[str, Any]) -> Any:
    annotations = plain(options.pop("annotations", None))
    if annotations:
        options["annotations"] = annotations
    uri = checked_uri(component.uri)
    if component.converts_reads:
        options["mime_type"] = component.mime_type
        function = with_result(adapted(component.fn, has_schema=False), None, asking(component.convert_result))
    else:
        function = adapted(component.fn, has_schema=not returns_contents(component.fn))
    resource = make_resource(
        with_joined_paths(function, _PATHS.findall(uri)),
        uri=uri,
        options=_common(component, options),
        services=server.services,
    )
    if isinstance(resource, features.ResourceTemplate):
        screening = screening_of(component.security, server.resource_security)
        handler = checked_reads(component, resource.handler)
        resource = replace(resource, template=resource.template.with_screening(screening), handler=handler)
    return replace(resource, interactive=True)


def _common(component: Component, options: dict[str, Any]) -> Any:
    """Return the options that funcmcp takes, without those that were not chosen."""
    chosen = without_none(options)
    chosen["name"] = component.name
    chosen.setdefault("timeout", None)
    if "icons" in chosen:
        chosen["icons"] = icons_of(chosen["icons"])
    if "meta" in chosen:
        chosen["meta"] = result_meta(chosen["meta"])
    return chosen


_MAKERS: dict[str, Callable[..., Any]] = {"tool": _make_tool, "prompt": _make_prompt, "resource": _make_resource}
