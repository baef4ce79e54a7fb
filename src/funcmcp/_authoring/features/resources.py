"""Resources from Python functions: `make_resource`, `make_lister`, and the decorator `resource` for methods.

Source: 2026-07-28 "server/resources".
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.calling.completers import completers_of
from funcmcp._authoring.calling.function_call import FeatureFunction, FunctionCall
from funcmcp._authoring.calling.resource_read import LISTER_CALL, RESOURCE_CALL, ResourceSettings, check_lists, lists_in
from funcmcp._authoring.features.decorators import FeatureKind, mark
from funcmcp._authoring.features.options import FeatureOptions, checked_options
from funcmcp._authoring.features.permissions import AccessOptions, access_of
from funcmcp._authoring.features.registration_checks import (
    feature_definition,
    feature_members,
    feature_name,
    named_function,
)
from funcmcp._authoring.results.resource_contents import media_type_of
from funcmcp._authoring.schemas.json_values import check_json
from funcmcp._authoring.signatures.annotations import description_mark
from funcmcp._authoring.signatures.signature import EMPTY, Signature
from funcmcp._objects.public_names import public
from funcmcp._protocol.apps import PAGE_TYPE, is_page
from funcmcp._protocol.uri_template import InvalidTemplateError, URITemplate
from funcmcp._server.catalog.features import Resource, ResourceLister, ResourceTemplate
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

    from funcmcp._authoring.calling.resource_read import ListerCall, ResourceRead
    from funcmcp._authoring.calling.services import Services
    from funcmcp._authoring.features.ui import UIResource


class ResourceOptions(FeatureOptions, total=False):
    """The options of a resource or a template.

    Attributes:
        mime_type: The media type of the contents. By default it is `text/plain` for a text, `application/octet-stream`
            for bytes, and `application/json` for other values.
        size: The size in bytes. A template has no size.
        annotations: Hints for clients, such as ``{"audience": ["user"], "priority": 0.5}``.
        ui: What the page of a ``ui://`` resource may do.
        completions: Functions that complete variables of a template, by the variable's name. Each gets the text so far
            and, if it takes a second argument, a dict of the other variables.
    """

    mime_type: str
    size: int
    annotations: Mapping[str, Any]
    ui: UIResource
    completions: Mapping[str, Callable[..., Any]]


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")


def make_resource(
    function: Callable[..., Any],
    *,
    uri: str,
    options: ResourceOptions,
    services: Services,
    owner: type | None = None,
) -> Resource | ResourceTemplate:
    """Return a resource that calls a function, or a template if the URI has variables.

    Args:
        function: Returns the contents. Its arguments are the template's variables.
        uri: A URI that `checked_uri` accepts, such as `menu://today` or `menu://categories/{category_id}`.
        options: Options that replace or complete the function's signature and docstring.
        services: Types that are registered here are injected. They may still be registered later.
        owner: The class that is constructed for each call, if the function is one of its methods.

    Raises:
        RegistrationError: The function can't be a resource, or an option is not valid.
    """
    options = checked_options(options, ResourceOptions)
    template = URITemplate(uri)
    feature = named_function("resource", function, options, services, owner)
    _check_options(feature.name, options, template)
    mime_type = options.get("mime_type") or (PAGE_TYPE if is_page(uri) else None)
    ui = options.get("ui")
    settings = ResourceSettings(template, mime_type, ui=None if ui is None else ui.wire)
    call: ResourceRead = FunctionCall(feature, RESOURCE_CALL, settings)
    if template.optional:
        types = call.signature.try_types()
        template = URITemplate(uri, joined=() if types is None else lists_in(types.parameters))
        call.settings = settings._replace(template=template)
    members = feature_members(call, options, services)
    _check_variables(call.name, template, call.signature)

    @functools.cache
    def describe() -> dict[str, Any]:
        call.prepare()  # so that a function that can't be called is an error of the list, too
        return _definition(call, uri, options, mime_type)

    if not template.variables:
        return Resource(uri=uri, describe=describe, handler=call.run, **members)
    completers = completers_of(call, options.get("completions", {}), template.variables, services)
    return ResourceTemplate(
        template=template,
        describe=describe,
        handler=call.run,
        **members,
        completers=completers,
        input_schema=call.input_schema,
    )


def make_lister(
    function: Callable[..., Any],
    *,
    scheme: str,
    options: AccessOptions,
    services: Services,
    owner: type | None = None,
) -> ResourceLister:
    """Return a lister that calls a function.

    Args:
        function: Returns `ResourceInfo` objects. It takes only a context and services.
        scheme: The scheme of the resources' URIs, which `checked_scheme` accepts.
        options: Who may list these resources.
        services: Types that are registered here are injected. They may still be registered later.
        owner: The class that is constructed for each call, if the function is one of its methods.

    Raises:
        RegistrationError: The function can't be a lister, or an option is not valid.
    """
    options = checked_options(options, AccessOptions)
    name = feature_name(function, None, "resource list")
    call: ListerCall = FunctionCall(FeatureFunction(name, function, services, owner), LISTER_CALL, scheme)
    return ResourceLister(scheme, call.run, access_of(name, options))


RESOURCE = FeatureKind(make_resource, ResourceOptions)
LISTER = FeatureKind(make_lister, AccessOptions)


@public("funcmcp")
def resource(uri: str, **options: Unpack[ResourceOptions]) -> Callable[[Any], Any]:
    """Mark a method as a resource of its class. Add the class, or an object of it, with ``mcp.add(...)``."""
    maker = RESOURCE.maker(options, uri=checked_uri(uri))
    return lambda function: mark(function, maker)


def checked_uri(uri: object) -> str:
    """Return a URI or a URI template. Raise RegistrationError for anything else."""
    if not isinstance(uri, str):
        raise RegistrationError('A resource needs a URI. Write @resource("menu://today").')
    try:
        URITemplate(uri)
    except InvalidTemplateError as error:
        raise RegistrationError(str(error)) from None
    return uri


def checked_scheme(scheme: object) -> str:
    """Return a scheme of URIs. Raise RegistrationError for anything else."""
    if callable(scheme):
        raise RegistrationError('A list of resources needs a scheme. Write @mcp.resource_lister("menu").')
    if not isinstance(scheme, str) or not _SCHEME.fullmatch(scheme):
        raise RegistrationError(f"{scheme!r} is not a scheme. Pass a word such as 'menu', without '://'.")
    return scheme


def _check_options(name: str, options: ResourceOptions, template: URITemplate) -> None:
    annotations = options.get("annotations")
    if annotations is not None:
        check_json(annotations, f"annotations of {name}")
    size = options.get("size")
    if size is not None and (type(size) is not int or size < 0):
        raise RegistrationError(f"size of {name} must be a number of bytes, not {size!r}.")
    if template.variables and size is not None:
        raise RegistrationError(f"{name} is a template, which has no size. Remove size=.")
    if not template.variables and options.get("completions"):
        raise RegistrationError(f"{name} has no variables to complete. Remove completions=, or add variables.")


def _check_variables(name: str, template: URITemplate, signature: Signature) -> None:
    """Check that each variable of a template has a parameter.

    The other parameters are services, which may be registered later.
    """
    defaults = signature.defaults
    for variable in template.variables:
        if variable not in defaults:
            raise RegistrationError(
                f"{name} has no parameter for {{{variable}}} of its URI. Add a parameter {variable!r}."
            )
    for variable in template.optional:
        if defaults[variable] is EMPTY:
            raise RegistrationError(f"{name}: {variable!r} is in the URI's query, so it needs a default.")
    types = signature.try_types()
    if types is not None:
        check_lists(name, template, types.parameters)


def _definition(call: ResourceRead, uri: str, options: ResourceOptions, mime_type: str | None) -> dict[str, Any]:
    """Return the definition of the resource or template in the newest revision's shape."""
    description = options.get("description")
    if description is None:
        description = _description(call)
    place = "uriTemplate" if "{" in uri else "uri"
    annotations = options.get("annotations")
    members = {
        place: uri,
        "mimeType": mime_type or media_type_of(call.signature.returns()),
        "size": options.get("size"),
        "annotations": None if annotations is None else dict(annotations),
    }
    return feature_definition(call, options, description, members)


def _description(call: ResourceRead) -> str:
    """Return the docstring and, below it, the descriptions of variables: a template has no member for them."""
    paragraphs = [call.signature.description()]
    lines = ["Variables:"]
    for parameter in call.plan.arguments:
        text = description_mark(parameter.annotation)
        if text:
            lines.append(f"- {parameter.name}: {text}")
    if len(lines) > 1:
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)
