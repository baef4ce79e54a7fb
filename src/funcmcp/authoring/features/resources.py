"""Resources from Python functions: `make_resource`, `make_lister`, and the marker `resource` for methods.

Source: 2026-07-28 "server/resources".
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from funcmcp.authoring.calling.completers import completers_of, own_completers
from funcmcp.authoring.calling.feature_context import ResourceContext
from funcmcp.authoring.calling.function_call import FunctionCall
from funcmcp.authoring.features.decorators import mark
from funcmcp.authoring.features.permissions import AccessOptions, access_of
from funcmcp.authoring.features.registration_checks import (
    check_common,
    check_parameters,
    feature_name,
    is_interactive,
    shown_errors_of,
)
from funcmcp.authoring.features.resource_read import Reading, check_lists, media_type_of
from funcmcp.authoring.signatures.annotations import description_mark
from funcmcp.authoring.signatures.docstring import description
from funcmcp.authoring.signatures.naming import title_of
from funcmcp.authoring.signatures.signature import EMPTY, Signature, function_name
from funcmcp.authoring.values.content import ResourceInfo, icon_list
from funcmcp.authoring.values.handwritten_schema import check_json
from funcmcp.protocol.apps import PAGE_TYPE, is_page
from funcmcp.protocol.uri_template import InvalidTemplateError, URITemplate
from funcmcp.server.catalog.features import Resource, ResourceLister, ResourceTemplate
from funcmcp.server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Unpack

    from funcmcp.authoring.calling.services import Services
    from funcmcp.authoring.features.permissions import AccessKeywords
    from funcmcp.authoring.features.ui import UIResource
    from funcmcp.authoring.values.content import Icon
    from funcmcp.server.calls.context import RequestContext
    from funcmcp.server.options import ShowErrors

    class ResourceKeywords(AccessKeywords, total=False):
        """The options of a resource as keywords; see `ResourceOptions`."""

        name: str
        title: str
        description: str
        mime_type: str
        size: int
        annotations: Mapping[str, Any]
        icons: Sequence[Icon | Mapping[str, Any]]
        meta: Mapping[str, Any]
        timeout: float | None
        show_errors: ShowErrors | None
        ui: UIResource
        completions: Mapping[str, Callable[..., Any]]


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")


@dataclass(frozen=True, slots=True)
class ResourceOptions(AccessOptions):
    """What an author may say of a resource beside its URI and its function.

    Attributes:
        name: a name for programs, instead of the function's name.
        title: A name for people. By default it is the words of the name.
        description: Replaces the docstring.
        mime_type: the media type of what it holds; by default `text/plain` for a text, `application/octet-stream` for
            bytes, `application/json` for all else.
        size: bytes that it has; not for templates.
        annotations: such as ``{"audience": ["user"], "priority": 0.5}``.
        icons: `Icon` objects, or dicts as the specification has them.
        meta: a JSON object that is sent as ``_meta``.
        timeout: seconds after which reading is cancelled; None for no limit.
        show_errors: Exceptions whose text clients get: True, False or types; None as the server's option says.
        ui: of a ``ui://`` resource: what the page may do.
        completions: functions that complete variables of a template, by name. They get what has been written, and, if
            they take a second argument, the variables that are known.
    """

    name: str | None = None
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Mapping[str, Any] | None = None
    icons: Sequence[Icon | Mapping[str, Any]] = ()
    meta: Mapping[str, Any] | None = None
    timeout: float | None = 60.0
    show_errors: ShowErrors | None = None
    ui: UIResource | None = None
    completions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)


def make_resource(
    function: Callable[..., Any],
    *,
    uri: str,
    options: ResourceOptions,
    services: Services,
    owner: type | None = None,
) -> Resource | ResourceTemplate:
    """Make a resource of a function, or a template if the URI has variables.

    Args:
        function: returns what the resource holds; its arguments are the template's variables.
        uri: such as `menu://today` or `menu://categories/{category_id}`, as `checked_uri` returned it.
        options: what is not to be taken from the function.
        services: types registered here are injected.
        owner: the class that is constructed for each call, if the function is a method of it.

    Raises:
        RegistrationError: the function can't be a resource.
    """
    template = URITemplate(uri)
    name = feature_name(function, options.name, "resource")
    _check_options(name, options)
    signature = Signature(function, bound=owner is not None)
    check_parameters(name, signature, services)
    call = FunctionCall(name, function, signature, services=services, context=ResourceContext, owner=owner)
    reading = Reading(call, template, mime_type=_mime_type(uri, options), ui=options.ui)
    _check_variables(name, template, signature)

    @functools.cache
    def describe() -> dict[str, Any]:
        reading.prepare()  # what can't be read is told where lists are made
        return _definition(name, function, uri, options, call)

    common: Any = {
        "describe": describe,
        "handler": reading.run,
        "interactive": is_interactive(signature),
        "timeout": options.timeout,
        "access": access_of(name, options),
        "shown_errors": shown_errors_of(name, options),
    }
    if not template.variables:
        if options.completions:
            raise RegistrationError(f"{name} has no variables to complete; completions are for templates.")
        return Resource(uri, **common)
    if options.size is not None:
        raise RegistrationError(f"{name} is a template, so it has no size.")
    completers = completers_of(options.completions, template.variables, name, services)
    return ResourceTemplate(template, **common, completers={**own_completers(signature), **completers})


def make_lister(
    function: Callable[..., Any],
    *,
    scheme: str,
    options: AccessOptions,
    services: Services,
    owner: type | None = None,
) -> ResourceLister:
    """Make what lists resources of a scheme of a function that returns `ResourceInfo` objects.

    Args:
        function: takes nothing but a context and services.
        scheme: as `checked_scheme` returned it.
        options: for whom it is asked.
        services: types registered here are injected.
        owner: the class that is constructed for each call, if the function is a method of it.

    Raises:
        RegistrationError: the function can't be called by name.
    """
    name = feature_name(function, None, "resource list")
    signature = Signature(function, bound=owner is not None)
    call = FunctionCall(name, function, signature, services=services, context=ResourceContext, owner=owner)

    def render(value: Any) -> list[dict[str, Any]]:
        if not isinstance(value, list | tuple) or not all(isinstance(item, ResourceInfo) for item in value):
            raise TypeError(f"{name} must return a list of ResourceInfo objects.")
        wrong = [item.wire["uri"] for item in value if not item.wire["uri"].startswith(f"{scheme}:")]
        if wrong:
            raise ValueError(f"{name} lists resources of the scheme {scheme!r}, not {wrong[0]!r}.")
        return [item.wire for item in value]

    async def handler(context: RequestContext) -> list[dict[str, Any]]:
        if call.plan.arguments:
            raise TypeError(f"{name} lists resources, so it takes no arguments but a context and services.")
        return await call.run(context, {}, make_context=functools.partial(ResourceContext, context), render=render)

    return ResourceLister(scheme, handler, access_of(name, options))


def resource(uri: str, /, **options: Unpack[ResourceKeywords]) -> Callable[[Any], Any]:
    """Mark a method as a resource of its class; add the class, or an object of it, with ``mcp.add(...)``."""
    maker = functools.partial(make_resource, uri=checked_uri(uri), options=ResourceOptions(**options))
    return lambda function: mark(function, maker)


def checked_uri(uri: object) -> str:
    """Return a URI or a template; raise RegistrationError if it is neither."""
    if not isinstance(uri, str):
        raise RegistrationError('A resource needs a URI: write @resource("menu://today").')
    try:
        URITemplate(uri)
    except InvalidTemplateError as error:
        raise RegistrationError(str(error)) from None
    return uri


def checked_scheme(scheme: object) -> str:
    """Return a scheme; raise RegistrationError if it is none."""
    if callable(scheme):
        raise RegistrationError('A list of resources needs a scheme: write @mcp.resource_list("menu").')
    if not isinstance(scheme, str) or not _SCHEME.fullmatch(scheme):
        raise RegistrationError(f"A scheme is a word such as 'menu', without '://'; got {scheme!r}.")
    return scheme


def _check_options(name: str, options: ResourceOptions) -> None:
    check_common(name, options)
    if options.annotations is not None:
        check_json(options.annotations, f"annotations of {name}")
    if options.size is not None and (type(options.size) is not int or options.size < 0):
        raise RegistrationError(f"size of {name} must be a number of bytes; got {options.size!r}.")


def _check_variables(name: str, template: URITemplate, signature: Signature) -> None:
    """Compare the template's variables with the parameters; which of the others are services shows later."""
    names = signature.names()
    missing = [variable for variable in template.variables if variable not in names]
    if missing:
        raise RegistrationError(f"{name} has no parameter for {{{missing[0]}}} of its URI.")
    required = [variable for variable in template.optional if names[variable] is EMPTY]
    if required:
        raise RegistrationError(f"{name}: {required[0]!r} stands in the URI's query, so it needs a default.")
    if signature.try_hints() is not None:
        check_lists(name, template, signature.parameters())


def _mime_type(uri: str, options: ResourceOptions) -> str | None:
    return options.mime_type or (PAGE_TYPE if is_page(uri) else None)


def _definition(name: str, function: Any, uri: str, options: ResourceOptions, call: FunctionCall) -> dict[str, Any]:
    """Return the definition of the resource or template in the newest revision's shape."""
    text = _description(function, call) if options.description is None else options.description
    members = {
        "uriTemplate" if "{" in uri else "uri": uri,
        "name": name,
        "title": options.title or title_of(options.name, function_name(function)) or name,
        "description": text or None,
        "mimeType": _mime_type(uri, options) or media_type_of(call.signature.returns()),
        "size": options.size,
        "annotations": None if options.annotations is None else dict(options.annotations),
        "icons": icon_list(options.icons) or None,
        "_meta": None if options.meta is None else dict(options.meta),
    }
    return {member: value for member, value in members.items() if value is not None}


def _description(function: Any, call: FunctionCall) -> str:
    """Return the docstring, with the descriptions of variables below it: a template has no other place for them."""
    marked = {parameter.name: description_mark(parameter.annotation) for parameter in call.plan.arguments}
    variables = [f"- {name}: {text}" for name, text in marked.items() if text]
    paragraphs = [description(function), "\n".join(["Variables:", *variables]) if variables else ""]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
