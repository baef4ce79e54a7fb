"""Features from the definitions of an upstream.

How it works: an upstream may list other features for a client that can be asked than for one that can't. So the lists
are read for a client with all capabilities and for one without any, at the same time. Only if they differ, they are
read once more without each capability: a feature needs those without which it is not listed (`Feature.needs`). Lists
that are too long to be read to their end are not compared, because they may differ by the place of that end alone.

Later, only those without any are read as long as they do not change and the upstream announces no change.

A feature whose definition has not changed is the same object in each list, so a list that is read again costs less.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from funcmcp._objects.definitions import replace
from funcmcp._objects.mappings import without
from funcmcp._protocol import apps
from funcmcp._protocol.completion import Completion, completion_of
from funcmcp._protocol.errors import ClientError, MCPError
from funcmcp._protocol.headers import mirrored_parameters
from funcmcp._protocol.uri_template import InvalidTemplateError
from funcmcp._server.calls.feature import UpstreamSource
from funcmcp._server.catalog.features import Prompt, Resource, ResourceTemplate, Skill, Tool
from funcmcp._server.handlers.lists import Caching
from funcmcp._upstreams.auth import calling
from funcmcp._upstreams.definitions import PROMPTS, RESOURCES, SKILLS, TEMPLATES, TOOLS, without_null
from funcmcp._upstreams.eras import is_of_another_version
from funcmcp._upstreams.names import prompt_name, template_of, tool_name
from funcmcp._upstreams.upstream_tasks import task_options

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from funcmcp._auth.principal import Principal
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature import Capability
    from funcmcp._server.catalog.features import Completer, Watch
    from funcmcp._server.catalog.transformed import AnyFeature
    from funcmcp._upstreams.connection import Link
    from funcmcp._upstreams.definitions import DefinitionReader, Kind, UpstreamLists
    from funcmcp._upstreams.forwarding import Forwarding
    from funcmcp._upstreams.links import Links

    Needs = Mapping[tuple[Kind, str], frozenset[Capability]]
    Choose = Callable[[UpstreamLists], Awaitable[UpstreamLists]]

_PARTS: dict[Capability, dict[str, Any]] = {
    ("roots",): {"listChanged": True},
    ("sampling",): {},
    ("sampling", "tools"): {},
    ("sampling", "context"): {},
    ("elicitation",): {"form": {}},
    ("elicitation", "url"): {},
    ("extensions", apps.EXTENSION): {"mimeTypes": [apps.PAGE_TYPE]},
}
"""Capabilities of clients on which a list may depend, each after the one that it is a part of."""


_MAX_FEATURES = 50_000
"""Features of all callers that are kept for their next lists."""


class ServerFacts(NamedTuple):
    """What an upstream says about itself.

    Attributes:
        info: Its Implementation.
        capabilities: Its capabilities.
        instructions: Its instructions for the model; None if it has none.
    """

    info: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    instructions: str | None


class UpstreamFeatures:
    """Reads the lists of an upstream, and makes features of them.

    Args:
        upstream: The upstream, which the features name as their source.
        definitions: Reads its lists.
        links: The connections to it.
        forwarding: Passes the requests for the features on.
        choose: Returns those of the listed definitions that become features.
        watch: Watches a resource for a client.

    Attributes:
        facts: What the upstream says about itself; None before the first list.
        caching: How clients may cache lists with these features.
    """

    def __init__(
        self,
        upstream: Any,
        definitions: DefinitionReader,
        links: Links,
        forwarding: Forwarding,
        *,
        choose: Choose,
        watch: Watch,
    ) -> None:
        self._upstream = upstream
        self._links = links
        self._forwarding = forwarding
        self._choose = choose
        self._watch = watch
        self._definitions = definitions
        self._features: dict[tuple[Kind, str], tuple[Any, AnyFeature]] = {}  # with what they were made of
        self._last: tuple[UpstreamLists, UpstreamLists, Needs] | None = None  # for clients without, and with all
        self._changes = 0  # how often the upstream has announced one
        self.facts: ServerFacts | None = None
        self.caching = Caching()

    async def connect(self) -> ServerFacts:
        """Connect, unless there is a connection, and return what the upstream says about itself."""
        self.facts = _facts_of(await self._links.for_lists(None, {}))
        return self.facts

    def forget(self) -> None:
        """Read the lists for clients with capabilities again, because the upstream has announced a change."""
        self._changes += 1
        self._last = None

    async def read(self, caller: Principal | None) -> list[AnyFeature]:
        """Return the features of a caller; raise ClientError or MCPError if the upstream does not list them."""
        with calling(caller):
            lists, needs = await self._lists(caller)
        self.caching = lists.caching
        chosen = await self._choose(lists)
        features: list[AnyFeature] = []
        for kind, definitions in chosen.definitions.items():
            async for key, definition in self._definitions.work.parts(definitions.items()):
                features += self._feature(kind, key, definition, needs.get((kind, key), frozenset()))
        features += _files_of_skills(features)
        if caller is None or len(self._features) > _MAX_FEATURES:
            current = chosen.keys()
            self._features = {place: entry for place, entry in self._features.items() if place in current}
        return features

    async def definitions(self) -> tuple[ServerFacts, UpstreamLists]:
        """Return what the upstream says about itself, and all its definitions; raise ClientError or MCPError."""
        lists, _ = await self._lists(None)
        return await self.connect(), lists

    def unlisted(self, uri: str) -> Resource:
        """Return a resource for a URI that the upstream has named without listing it, as in a link."""
        return Resource(
            uri,
            lambda: {"uri": uri, "name": uri},
            self._read,
            interactive=True,
            watch=self._watch_of_resources,
            upstream=UpstreamSource(self._upstream, uri),
        )

    async def _lists(self, caller: Principal | None) -> tuple[UpstreamLists, Needs]:
        """Return what the upstream lists for a client with all capabilities, and which of them are needed for it."""
        if caller is None and self._last is not None:
            last = self._last
            if await self._listed(None, {}) == last[0]:
                return last[1], last[2]
        changes = self._changes
        every, plain = await asyncio.gather(self._listed(caller, _capabilities()), self._listed_or_none(caller, {}))
        if plain is None or plain.is_cut or every.is_cut:
            self._last = None
            return every, {}
        needs = {} if plain.keys() == every.keys() else await self._needs(caller, plain, every)
        is_valid = caller is None and changes == self._changes
        self._last = (plain, every, needs) if is_valid else None
        return every, needs

    async def _needs(self, caller: Principal | None, plain: UpstreamLists, every: UpstreamLists) -> Needs:
        """Return which capabilities a client needs for what is not listed for each client.

        Args:
            caller: The caller.
            plain: What is listed for a client without capabilities. What only such a client has becomes a part of
                *every*, because a feature can't need that a client lacks something.
            every: What is listed for a client with all of them.
        """
        parts = [*_PARTS]
        others = await asyncio.gather(*(self._listed_or_none(caller, _capabilities(part)) for part in parts))
        listed = {part: lists.keys() for part, lists in zip(parts, others, strict=True) if lists is not None}
        needs: dict[tuple[Kind, str], frozenset[Capability]] = {}
        for place in every.keys() - plain.keys():
            missing = {part for part, keys in listed.items() if place not in keys}
            needs[place] = frozenset(missing or {part for part in parts if len(part) == 1})
        for kind, definitions in plain.definitions.items():
            for key, definition in definitions.items():
                every.definitions.setdefault(kind, {}).setdefault(key, definition)
        return needs

    async def _listed(self, caller: Principal | None, capabilities: Mapping[str, Any]) -> UpstreamLists:
        link = await self._links.for_lists(caller, capabilities)
        self.facts = _facts_of(link)
        try:
            return await self._definitions.read(link, capabilities)
        except (ClientError, MCPError) as error:
            if is_of_another_version(error):
                self._links.reopen(link)
            raise
        finally:
            self._links.release(link)

    async def _listed_or_none(self, caller: Principal | None, capabilities: Mapping[str, Any]) -> UpstreamLists | None:
        """Return what is listed for a client with these capabilities only; None if an upstream refuses this client."""
        with suppress(ClientError, MCPError):
            return await self._listed(caller, capabilities)
        return None

    @property
    def reports_resources(self) -> bool:
        """Whether the upstream reports changes of resources."""
        resources = None if self.facts is None else self.facts.capabilities.get("resources")
        return isinstance(resources, dict) and resources.get("subscribe") is True

    @property
    def _watch_of_resources(self) -> Watch | None:
        return self._watch if self.facts is None or self.reports_resources else None

    @property
    def _completes(self) -> bool:
        """Whether the upstream completes arguments."""
        return self.facts is not None and "completions" in self.facts.capabilities

    def _feature(
        self, kind: Kind, key: str, definition: Mapping[str, Any], needs: frozenset[Capability]
    ) -> list[AnyFeature]:
        """Return the feature of a definition, the same one as before if it has not changed; none if it is not valid."""
        origin = (definition, needs, self._completes, self.reports_resources)
        entry = self._features.get((kind, key))
        if entry is not None and entry[0] == origin:
            return [entry[1]]
        try:
            feature = _MAKERS[kind](self, key, without_null(definition))
        except InvalidTemplateError as error:
            self._definitions.log(kind.name, key, str(error))
            return []
        self._definitions.report_hidden_characters(kind, key, definition)
        feature = replace(feature, needs=needs, upstream=UpstreamSource(self._upstream, key))
        self._features[kind, key] = origin, feature
        return [feature]

    def _tool(self, name: str, definition: Mapping[str, Any]) -> Tool:
        exposed = tool_name(name)
        mirrored = mirrored_parameters(definition["inputSchema"])
        shown = {**without(dict(definition), "execution"), "name": exposed}

        task = task_options(definition, {} if self.facts is None else self.facts.capabilities)
        has_task = task is not None
        if task is not None and not task.detaches:  # otherwise the upstream decides for each call
            shown["execution"] = {"taskSupport": task.mode}

        async def call(context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
            params = {"name": name, "arguments": arguments}
            return await self._forwarding.send(context, "tools/call", params, mirrored=mirrored, has_task=has_task)

        annotations = definition.get("annotations")
        return Tool(
            exposed, lambda: shown, call, mirrored=mirrored, interactive=True, annotations=annotations, task=task
        )

    def _prompt(self, name: str, definition: Mapping[str, Any]) -> Prompt:
        exposed = prompt_name(name)
        shown = {**definition, "name": exposed}

        async def get(context: RequestContext, arguments: dict[str, str]) -> dict[str, Any]:
            return await self._forwarding.send(context, "prompts/get", {"name": name, "arguments": arguments})

        names = [argument["name"] for argument in definition.get("arguments", ())] if self._completes else []
        completers = self._completers({"type": "ref/prompt", "name": name}, names)
        return Prompt(exposed, lambda: shown, get, completers=completers, interactive=True)

    def _resource(self, uri: str, definition: Mapping[str, Any]) -> Resource:

        async def read(context: RequestContext, requested: str, values: object) -> dict[str, Any]:
            del requested  # it may have another case in its scheme
            return await self._read(context, uri, values)

        return Resource(uri, lambda: definition, read, interactive=True, watch=self._watch_of_resources)

    def _template(self, text: str, definition: Mapping[str, Any]) -> ResourceTemplate:
        template = template_of(text)
        names: Iterable[str] = template.variables if self._completes else ()
        completers = self._completers({"type": "ref/resource", "uri": text}, names)
        return ResourceTemplate(
            template,
            lambda: definition,
            self._read,
            completers=completers,
            interactive=True,
            watch=self._watch_of_resources,
        )

    def _skill(self, uri: str, definition: Mapping[str, Any]) -> Skill:
        listed = definition["resources"]
        files = [self.unlisted(file["uri"]) for file in listed] if isinstance(listed, list) else []
        return Skill(uri, lambda: definition, tuple(files))

    async def _read(self, context: RequestContext, uri: str, values: object) -> dict[str, Any]:
        del values
        return await self._forwarding.send(context, "resources/read", {"uri": uri})

    def _completers(self, reference: Mapping[str, str], names: Iterable[str]) -> dict[str, Completer]:
        """Return what completes the arguments of a prompt, or the variables of a template, at the upstream."""

        def completer(name: str) -> Completer:
            async def complete(context: RequestContext, value: str, arguments: Mapping[str, str]) -> Completion:
                params: dict[str, Any] = {"ref": reference, "argument": {"name": name, "value": value}}
                if arguments:
                    params["context"] = {"arguments": dict(arguments)}
                result = await self._forwarding.send(context, "completion/complete", params)
                completion = result.get("completion")
                return completion_of(completion if isinstance(completion, dict) else {})

            return complete

        return {name: completer(name) for name in names}


def _files_of_skills(features: Sequence[Any]) -> list[Resource]:
    """Return the files of skills that the upstream does not list as resources."""
    listed = {feature.uri for feature in features if isinstance(feature, Resource)}
    files = {file.uri: file for skill in features if isinstance(skill, Skill) for file in skill.files}
    return [replace(file, is_listed=False) for uri, file in files.items() if uri not in listed]


_MAKERS: dict[Kind, Callable[[UpstreamFeatures, str, Mapping[str, Any]], Any]] = {
    TOOLS: UpstreamFeatures._tool,  # noqa: SLF001 - of this module
    RESOURCES: UpstreamFeatures._resource,  # noqa: SLF001 - as above
    TEMPLATES: UpstreamFeatures._template,  # noqa: SLF001 - as above
    SKILLS: UpstreamFeatures._skill,  # noqa: SLF001 - as above
    PROMPTS: UpstreamFeatures._prompt,  # noqa: SLF001 - as above
}


def _facts_of(link: Link) -> ServerFacts:
    return ServerFacts(link.server_info, link.capabilities, link.instructions)


def _capabilities(removed: Capability | None = None) -> dict[str, Any]:
    """Return ClientCapabilities with all parts, or with all but one and what belongs to it."""
    capabilities: dict[str, Any] = {}
    for path, value in _PARTS.items():
        if removed is not None and path[: len(removed)] == removed:
            continue
        place = capabilities
        for name in path[:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = dict(value)
    return capabilities
