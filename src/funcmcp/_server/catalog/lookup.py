"""Which feature a request names, by its params.

Each lookup returns the feature with the values that its URI has for a template's variables, and raises an MCPError that
goes to the client if there is no such feature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from funcmcp._protocol.errors import InvalidParams, ResourceNotFound, UnknownFeature
from funcmcp._protocol.uri_template import UnsafeValueError
from funcmcp._server.calls.route import NO_VALUES
from funcmcp._server.catalog.features import Resource
from funcmcp._server.catalog.versions import requested_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp._protocol.uri_template import Values
    from funcmcp._server.catalog.catalog import Catalog
    from funcmcp._server.catalog.features import Prompt, ResourceTemplate, Skill, Tool
    from funcmcp._server.catalog.registry import Keyed, Registry

    F = TypeVar("F", bound=Keyed)

    ReadableMatch: TypeAlias = tuple[Resource | ResourceTemplate, Values]

MAX_MATCHES = 256
"""The size of the cache of URIs and their templates. Clients choose the URIs, so it must be bounded."""

MAX_LISTED_VERSIONS = 10
"""Versions of a feature that an error names."""


class Lookup:
    """Finds features in a catalog.

    Args:
        catalog: The features.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._matches: dict[str, ReadableMatch] = {}  # by URI
        catalog.templates.listeners.append(lambda _feature, _count: self._matches.clear())

    def tool(self, params: dict[str, Any]) -> tuple[Tool, Values]:
        """Return the tool that ``params["name"]`` names; raise InvalidParams."""
        name = params.get("name")
        if type(name) is not str:
            raise InvalidParams('"name" must be a string.')
        tool = self._catalog.tools.get(name)
        if tool is None:
            raise UnknownFeature("tool", name)
        if tool.version is None:
            return tool, NO_VALUES
        return _named_version(self._catalog.tools, tool, params), NO_VALUES

    def prompt(self, params: dict[str, Any]) -> tuple[Prompt, Values]:
        """Return the prompt that ``params["name"]`` names; raise InvalidParams."""
        name = params.get("name")
        if type(name) is not str:
            raise InvalidParams('"name" must be a string.')
        prompt = self._catalog.prompts.get(name)
        if prompt is None:
            raise UnknownFeature("prompt", name)
        if prompt.version is None:
            return prompt, NO_VALUES
        return _named_version(self._catalog.prompts, prompt, params), NO_VALUES

    def readable(self, params: dict[str, Any]) -> ReadableMatch:
        """Return the resource or template that reads ``params["uri"]``; raise InvalidParams or ResourceNotFound."""
        uri = uri_of(params)
        feature, values = self.reader_of(uri)
        if feature.version is None:
            return feature, values
        registry: Registry[Any] = self._catalog.resources if isinstance(feature, Resource) else self._catalog.templates
        versioned: Resource | ResourceTemplate | None = in_version(registry, feature, params)
        if versioned is None:
            raise ResourceNotFound(uri, f"Resource not found in this version. {_versions_of(registry, feature)}")
        return versioned, values

    def reader_of(self, uri: str) -> ReadableMatch:
        """Return the resource or template that reads a URI, and the values that the URI has for the template.

        A resource precedes every template, also if it is hidden, and a template precedes those that were registered
        after it.

        Raises:
            InvalidParams: The first template that matches refuses a value, because it could leave the place that the
                template stands for, such as ``..`` in a path.
            ResourceNotFound: No resource and no template reads the URI, or the template hides that it refuses a value.
        """
        key = self._catalog.resources.key_like(uri)
        if key is not None:
            resource = self._catalog.resources.get(key)
            if resource is None:
                raise ResourceNotFound(uri)  # a resource that is hidden must not be read through a template
            return resource, {}
        match = self._matches.get(uri)
        if match is not None:
            return match
        for template in self._catalog.templates:
            try:
                values = template.template.match(uri)
            except UnsafeValueError as error:
                if error.is_hidden:
                    raise ResourceNotFound(uri) from error
                raise InvalidParams(str(error), {"uri": uri}) from None
            if values is not None:
                if len(self._matches) >= MAX_MATCHES:
                    self._matches.clear()
                self._matches[uri] = template, values
                return template, values
        raise ResourceNotFound(uri)

    def skill(self, params: dict[str, Any]) -> tuple[Skill, Values]:
        """Return the skill whose SKILL.md ``params["uri"]`` names; raise InvalidParams."""
        uri = uri_of(params)
        skill = self._catalog.skills.get(uri)
        if skill is None:
            raise InvalidParams("No skill is served at this URI.", {"uri": uri})
        return skill, NO_VALUES

    def completed(self, params: dict[str, Any]) -> tuple[Prompt | ResourceTemplate, Values]:
        """Return the prompt or template that ``params["ref"]`` names; raise InvalidParams."""
        reference = params.get("ref")
        kind = reference.get("type") if type(reference) is dict else None
        if type(reference) is dict and kind == "ref/prompt":
            return self.prompt(reference)
        if type(reference) is dict and kind == "ref/resource":
            return self._template(reference.get("uri")), NO_VALUES
        raise InvalidParams('"ref" must be an object whose "type" is ref/prompt or ref/resource.')

    def _template(self, text: object) -> ResourceTemplate:
        template = self._catalog.templates.get(text) if type(text) is str else None
        if template is None:
            raise InvalidParams(
                '"ref" names no resource template of this server. Its "uri" must be the template\'s text.'
            )
        return template


def in_version(registry: Registry[F], feature: F, params: Mapping[str, Any]) -> F | None:
    """Return a feature in the version that a request names; the newest one, which is *feature*, if it names none."""
    version = requested_version(params)
    return feature if version is None else registry.in_version(feature.key, version)


def _named_version(registry: Registry[F], feature: F, params: dict[str, Any]) -> F:
    """Return a tool or prompt in the version that a request names; raise UnknownFeature if there is none."""
    versioned = in_version(registry, feature, params)
    if versioned is None:
        raise UnknownFeature(registry.kind, feature.key, f", in this version. {_versions_of(registry, feature)}")
    return versioned


def _versions_of(registry: Registry[F], feature: F) -> str:
    """Return a sentence with the versions that a feature has, the newest first."""
    versions = registry.visible_versions(feature.key)
    listed = versions[:MAX_LISTED_VERSIONS]
    if len(versions) > MAX_LISTED_VERSIONS:
        listed.append("...")
    return f"Its versions: {', '.join(listed)}."


def uri_of(params: dict[str, Any]) -> str:
    """Return the URI that a request names; raise InvalidParams."""
    uri = params.get("uri")
    if type(uri) is not str:
        raise InvalidParams('"uri" must be a string.')
    return uri
