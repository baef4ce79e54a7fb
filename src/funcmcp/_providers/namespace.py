"""`Namespace`: names and URIs with a prefix, so that features of several servers have different ones."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from funcmcp._objects.definitions import replace
from funcmcp._objects.mappings import remember
from funcmcp._objects.public_names import public
from funcmcp._providers import uri_references
from funcmcp._server.catalog.features import (
    EncodedResult,
    JSONResult,
    Prompt,
    RawResponse,
    Resource,
    ResourceLister,
    ResourceTemplate,
    Skill,
    Tool,
)
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.catalog.transformed import Transform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._protocol.uri_template import URITemplate, Values
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.transformed import AnyFeature, Transformed
    from funcmcp._server.handlers.tools import ToolResult

_MAX_NAME = 128
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_WEB = ("http:", "https:", "data:")
"""Schemes of URIs that clients load themselves. Links to them stay as they are, unless the server has the resource."""


_MAX_WEB_URIS = 10_000
"""URIs that clients load themselves, and of which the server has a resource. Another server may change them often."""

_MAX_WEB_TEMPLATES = 20
"""Templates of such URIs. Each link in a result is compared with all of them, and another server writes both."""


@public("funcmcp.transforms")
class Namespace(Transform):
    """Puts a prefix before names and URIs: ``add`` becomes ``billing_add``, ``data://info`` ``data://billing/info``.

    A URI without ``//``, such as ``memo:today``, becomes ``billing+memo:today``. The prefix is also in the URIs of
    links and resources in results. URIs in texts and in structured content stay as they are, and so do links to
    ``http:``, ``https:`` and ``data:`` URIs that are not resources of the server.

    ``mcp.mount(server, prefix="billing")`` uses it.

    Args:
        prefix: Letters, digits, ``_``, ``-`` and ``.``, at most 63. The first one is a letter or digit.

    Raises:
        ValueError: The prefix is malformed.
    """

    def __init__(self, prefix: str) -> None:
        if not (isinstance(prefix, str) and _PREFIX.fullmatch(prefix)):
            raise ValueError(
                "prefix must have letters, digits, '_', '-' and '.' only, begin with a letter or digit, and have at "
                f"most 63 characters, such as 'billing'; got {prefix!r}."
            )
        self._prefix = prefix
        self._scheme = _as_scheme(prefix)
        self._web_uris: OrderedDict[str, None] = OrderedDict()
        self._web_templates: OrderedDict[str, URITemplate] = OrderedDict()

    def __call__(self, feature: AnyFeature) -> Transformed:
        """Return the feature with the prefix."""
        if isinstance(feature, Tool):
            return self._tool(feature)
        if isinstance(feature, Prompt):
            return self._prompt(feature)
        return self._resource(feature)

    def list_of(self, lister: ResourceLister) -> ResourceLister:
        """Return a list of the same resources, with the prefix in their URIs."""

        async def list_resources(context: RequestContext) -> list[dict[str, Any]]:
            return [{**resource, "uri": self.uri(resource["uri"])} for resource in await lister.handler(context)]

        return ResourceLister(f"{lister.scheme} of {self._prefix}", list_resources, lister.access)

    def skill_of(self, skill: Skill) -> Skill:
        """Return the skill with the prefix in its URI and those of its files."""

        def describe() -> Mapping[str, Any]:
            entry = skill.describe()
            files = [{**file, "uri": self.uri(file["uri"])} for file in entry["resources"]]
            return {**entry, "uri": self.uri(entry["uri"]), "resources": files}

        files = tuple(replace(file, uri=self.uri(file.uri)) for file in skill.files)
        return replace(skill, uri=self.uri(skill.uri), describe=describe, files=files)

    def source_key(self, kind: type, key: str) -> str:
        """Return the name or URI without the prefix."""
        if kind in {Tool, Prompt}:
            return key.removeprefix(f"{self._prefix}_")
        return self.source_uri(key)

    def may_have(self, kind: type, key: str) -> bool:
        """Return whether a name or URI can be one with the prefix."""
        if kind in {Tool, Prompt}:
            return key.startswith(f"{self._prefix}_")
        return self.source_uri(key) != key

    def uri(self, uri: str) -> str:
        """Return the URI of a resource with the prefix, in the place of its authority or before its scheme."""
        scheme, separator, path = uri.partition("://")
        return f"{scheme}{separator}{self._prefix}/{path}" if separator else f"{self._scheme}+{uri}"

    def source_uri(self, uri: str) -> str:
        """Return a URI without the prefix; a URI that does not have it is returned unchanged."""
        scheme, separator, path = uri.partition("://")
        if separator and path.startswith(f"{self._prefix}/"):
            return f"{scheme}{separator}{path[len(self._prefix) + 1 :]}"
        begin = f"{self._scheme}+"
        return uri[len(begin) :] if uri[: len(begin)].lower() == begin else uri

    def _link(self, uri: str) -> str:
        """Return a URI in a result with the prefix, unless clients load it themselves."""
        if uri.lower().startswith(_WEB) and not self._has_web_resource(uri):
            return uri
        return self.uri(uri)

    def _has_web_resource(self, uri: str) -> bool:
        if uri in self._web_uris:
            return True
        try:
            return any(template.match(uri) is not None for template in self._web_templates.values())
        except ValueError:  # a value that leaves the place of the template
            return False

    def _tool(self, tool: Tool) -> Tool:
        name = self._name(tool.name)

        async def call(context: RequestContext, arguments: dict[str, Any]) -> ToolResult:
            result = await tool.handler(context, arguments)
            if isinstance(result, JSONResult):
                return result  # it has one text
            if isinstance(result, RawResponse):
                return self._raw(result)
            return uri_references.in_tool_result(result, self._link)

        def describe() -> Mapping[str, Any]:
            return uri_references.in_definition({**tool.describe(), "name": name}, self._link)

        return replace(tool, name=name, describe=describe, handler=call)

    def _raw(self, response: RawResponse) -> RawResponse:
        result = response.message.get("result")
        if not isinstance(result, dict):
            return response
        return RawResponse({**response.message, "result": uri_references.in_tool_result(result, self._link)})

    def _prompt(self, prompt: Prompt) -> Prompt:
        name = self._name(prompt.name)

        async def get(context: RequestContext, arguments: dict[str, str]) -> dict[str, Any] | EncodedResult:
            result = await prompt.handler(context, arguments)
            if isinstance(result, EncodedResult):
                if b'"uri"' not in result.text:
                    return result
                result = result.result()
            return uri_references.in_prompt_result(result, self._link)

        def describe() -> Mapping[str, Any]:
            return {**prompt.describe(), "name": name}

        return replace(prompt, name=name, describe=describe, handler=get)

    def _resource(self, resource: Resource | ResourceTemplate) -> Resource | ResourceTemplate:
        key, inner = self.uri(resource.key), resource.source_uri

        async def read(context: RequestContext, uri: str, values: Values) -> dict[str, Any]:
            result = await resource.handler(context, self.source_uri(uri), values)
            if isinstance(result, EncodedResult):
                result = result.result()
            return uri_references.in_read_result(result, self.uri)

        def source_uri(uri: str) -> str:
            return self.source_uri(uri) if inner is None else inner(self.source_uri(uri))

        if isinstance(resource, Resource):
            if resource.uri.lower().startswith(_WEB):
                remember(self._web_uris, resource.uri, None, _MAX_WEB_URIS)
            definition = _described(resource, "uri", key)
            return replace(resource, uri=key, describe=definition, handler=read, source_uri=source_uri)
        if resource.key.lower().startswith(_WEB):
            remember(self._web_templates, resource.key, resource.template, _MAX_WEB_TEMPLATES)
        template = resource.template.with_text(key)
        definition = _described(resource, "uriTemplate", key)
        return replace(resource, template=template, describe=definition, handler=read, source_uri=source_uri)

    def _name(self, name: str) -> str:
        if len(self._prefix) + len(name) >= _MAX_NAME:
            raise RegistrationError(f"The name {self._prefix}_{name} has more than {_MAX_NAME} characters.")
        return f"{self._prefix}_{name}"


def _described(resource: Resource | ResourceTemplate, member: str, key: str) -> Any:
    def describe() -> Mapping[str, Any]:
        return {**resource.describe(), member: key}

    return describe


def _as_scheme(prefix: str) -> str:
    """Return a prefix as the beginning of a scheme, which has no underscore and begins with a letter (RFC 3986)."""
    scheme = prefix.lower().replace("_", "-")
    return scheme if scheme[0].isalpha() else f"x{scheme}"
