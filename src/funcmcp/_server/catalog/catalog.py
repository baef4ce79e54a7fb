"""The features of a server, and the capabilities that follow from them."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from funcmcp._protocol.apps import is_page
from funcmcp._protocol.methods import METHODS
from funcmcp._protocol.uri_template import with_lower_scheme
from funcmcp._server.catalog.features import (
    ExtensionMethod,
    Prompt,
    Resource,
    ResourceLister,
    ResourceTemplate,
    Skill,
    Tool,
)
from funcmcp._server.catalog.registry import RegistrationError, Registry
from funcmcp._server.catalog.visibility import Visibility
from funcmcp._server.connections.hub import PROMPTS, RESOURCES, TOOLS, Change

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from funcmcp._server.calls.feature import Feature
    from funcmcp._server.catalog.features import Addable
    from funcmcp._server.catalog.transformed import AnyFeature, AnyTransform, TransformedFeatures
    from funcmcp._server.catalog.visibility import Rule
    from funcmcp._server.options import ServerOptions


_HIDEABLE = (Tool, Resource, ResourceTemplate, Prompt, ExtensionMethod)
"""The kinds of features that rules of visibility hide."""


class Catalog:
    """All features of a server.

    Counters follow each change, so that adding a feature costs the same however many features there are.

    Args:
        options: Whether a capability is declared without features.
        publish: Is called with the change of a list after each change.
        open_tasks: Is called for the first tool with tasks; None if the server has none.

    Attributes:
        offered: Names of the capabilities that the server declares: "tools", "resources", "prompts", "completions",
            "logging", "tasks"; of the extensions that its features need: "apps", "skills"; and "subscriptions" if
            changes of a resource can be reported.
        extensions: The settings of the extensions that the author has added, by identifier.
        switched_off: Names of the capabilities that the server never declares. Their methods are unknown to it.
        visibility: Decides which features clients see. Features that they do not see are unknown to them.
        positions: The positions of the next providers and mounts.
    """

    def __init__(
        self,
        options: ServerOptions,
        publish: Callable[[Change], None],
        *,
        open_tasks: Callable[[], object] | None = None,
    ) -> None:
        self.tools: Registry[Tool] = Registry("tool")
        self.resources: Registry[Resource] = Registry("resource", with_lower_scheme, key_name="URI")
        self.templates: Registry[ResourceTemplate] = Registry("resource template", str, key_name="URI")
        self.listers: Registry[ResourceLister] = Registry("resource list", key_name="scheme")
        self.prompts: Registry[Prompt] = Registry("prompt")
        self.skills: Registry[Skill] = Registry("skill", str, key_name="URI")
        self.methods: Registry[ExtensionMethod] = Registry("method", str)
        self.extensions: dict[str, dict[str, Any]] = {}
        self.offered: frozenset[str] = frozenset()
        self.switched_off = frozenset(_switched_off(options))
        self.visibility = Visibility()
        self.positions = itertools.count()
        self._options = options
        self._publish = publish
        self._open_tasks = open_tasks
        self._transformed: TransformedFeatures | None = None
        self._promises: dict[object, frozenset[str]] = {}
        self._promised: frozenset[str] = frozenset()
        self._always_offered = {str(row.capability) for row in METHODS.values() if row.is_always_offered}
        self._derived: set[Addable] = set()
        self._anonymous = 0  # features for callers without credentials
        self._interactive = 0
        self._task_tools = 0
        self._completing_prompts = 0
        self._completing_templates = 0
        self._pages = 0
        self._reported = 0  # resources and templates whose changes can be reported
        self._registries: dict[type, Registry[Any]] = {
            Tool: self.tools,
            Resource: self.resources,
            ResourceTemplate: self.templates,
            ResourceLister: self.listers,
            Prompt: self.prompts,
            Skill: self.skills,
            ExtensionMethod: self.methods,
        }
        changes = {Tool: TOOLS, Prompt: PROMPTS, ExtensionMethod: None}
        for kind, registry in self._registries.items():
            registry.listeners.append(partial(self._changed, changes.get(kind, RESOURCES)))
        for kind in _HIDEABLE:
            self._registries[kind].is_visible = self.visibility.allows
        self._update_offered()

    def add(self, feature: Addable) -> None:
        """Add a feature and notify clients; raise RegistrationError if its key is taken, or it can't work here."""
        if self._transformed is None or _is_built_in(feature):
            self._register(feature)
        else:
            self._transformed.add(feature)

    def has(self, feature: Addable, *, itself: bool = False) -> bool:
        """Return whether there is a feature whose name another one takes; with *itself*, whether there is this one."""
        if self._transformed is not None:
            return self._transformed.has(feature) if itself else self._transformed.has_name(feature)
        registry: Registry[Any] = self._registries[type(feature)]
        if itself:
            return registry.holds(feature)
        key = registry.key_like(feature.key)
        existing = [] if key is None else registry.versions_of(key)
        return any(item.version == feature.version or None in {item.version, feature.version} for item in existing)

    def add_derived(self, feature: Addable) -> None:
        """Do as `add` for a feature that is made of one in the catalog, which transforms have changed already."""
        self._register(feature)
        self._derived.add(feature)

    def remove_derived(self, feature: Addable) -> None:
        """Remove a feature of `add_derived`; raise KeyError if it does not exist."""
        self._derived.remove(feature)
        self._unregister(feature)

    def _register(self, feature: Addable) -> None:
        if isinstance(feature, Tool) and feature.task is not None and feature.task.mode == "required":
            self._check_tasks(feature.name)
        self._registries[type(feature)].add(feature)

    def remove(self, feature: Addable) -> None:
        """Remove a feature and notify clients; raise KeyError if it does not exist."""
        if self._transformed is None or _is_built_in(feature):
            self._unregister(feature)
        else:
            self._transformed.remove(feature)

    def exchange(self, feature: Addable, replacement: Addable) -> None:
        """Put a feature of the same key and version in the place of another one; raise KeyError without that one."""
        if self._transformed is None:
            self._registries[type(feature)].exchange(feature, replacement)
        else:
            self._transformed.remove(feature)
            self._transformed.add(replacement)

    def _unregister(self, feature: Addable) -> None:
        self._registries[type(feature)].discard(feature)

    def remove_key(self, kind: type, key: str) -> None:
        """Remove the feature of a kind and a key, in all versions; raise KeyError if it does not exist."""
        if self._transformed is not None:
            self._transformed.remove_key(kind, key)
        else:
            self._registries[kind].remove(key)

    def add_transform(self, transform: AnyTransform) -> None:
        """Apply a transform to all features, and to further ones; raise RegistrationError if that fails.

        Features that are built in, or made of others, are not transformed.
        """
        if self._transformed is None:
            from funcmcp._server.catalog.transformed import TransformedFeatures  # noqa: PLC0415 - few servers need it

            transformed = TransformedFeatures(self._register, self._unregister)
            for registry in self._registries.values():
                derived = set(self._derived)  # those of a removed tool are removed with it
                for feature in [*registry.waiting(), *registry.every()]:
                    if not _is_built_in(feature) and feature not in derived:
                        registry.discard(feature)
                        transformed.add(feature)
            self._transformed = transformed
        self._transformed.add_transform(transform)

    @property
    def promised(self) -> frozenset[str]:
        """Capabilities of features that come later, or that depend on the caller."""
        return self._promised

    def promise(self, source: object, capabilities: Collection[str]) -> None:
        """Declare capabilities of features that come later, or that depend on the caller.

        Args:
            source: Where the features come from. What was promised for it before no longer holds.
            capabilities: The capabilities.
        """
        self._promises[source] = frozenset(capabilities)
        self._promised = frozenset[str]().union(*self._promises.values()) - self.switched_off
        self._update_offered()

    def promise_only(self, capabilities: Collection[str]) -> None:
        """Declare these capabilities of features that come later, and none of those that were promised before."""
        self._promises.clear()
        self.promise(None, capabilities)

    @contextmanager
    def collecting(self) -> Iterator[set[Change]]:
        """Collect the changes of a ``with`` block, in place of notifying clients of each of them."""
        publish, changes = self._publish, set[Change]()
        self._publish = changes.add
        try:
            yield changes
        finally:
            self._publish = publish

    def transformed(self, feature: Addable) -> list[Addable]:
        """Return what the transforms make of a feature, without adding it."""
        return [feature] if self._transformed is None else self._transformed.results_of(feature)

    @property
    def transforms(self) -> Sequence[AnyTransform]:
        """The transforms."""
        return () if self._transformed is None else self._transformed.transforms

    def set_visibility(self, rule: Rule) -> None:
        """Add a rule that hides or shows features, and notify clients of what it changes."""
        self.visibility.add(rule)
        for kind in _HIDEABLE:
            self._registries[kind].update_visibility()

    def fix_visibility(self) -> None:
        """Apply the rules so far as a transform, so that later transforms change what they hide, but not whether.

        A rule that names a feature would otherwise miss it under the name that a later transform gives it.
        """
        rules = self.visibility.rules
        if rules:
            self.add_transform(_Decided(rules))
            self.visibility.clear()
            for kind in _HIDEABLE:
                self._registries[kind].update_visibility()

    def features(self) -> Iterator[Feature]:
        """Yield all features with a rule of access, but for lists of resources."""
        yield from self.tools
        yield from self.resources
        yield from self.templates
        yield from self.prompts
        yield from self.methods

    def registry_of(self, kind: str) -> Registry[Any]:
        """Return the features of a kind, such as "tool" or "resource template"."""
        return next(registry for registry in self._registries.values() if registry.kind == kind)

    def has_kind(self, kind: str) -> bool:
        """Return whether there is a feature of a kind, such as "tool" or "resource template"."""
        return len(self.registry_of(kind)) > 0

    def follow_waiting(self, listener: Callable[[Any, str], None]) -> None:
        """Call a function with each feature that has to wait for its name, and the reason."""
        for registry in self._registries.values():
            registry.waiting_listeners.append(listener)

    @property
    def has_anonymous(self) -> bool:
        """Whether callers without credentials may use some feature."""
        return self._anonymous > 0

    @property
    def has_interactive(self) -> bool:
        """Whether some feature may send messages to the client before its answer."""
        return self._interactive > 0 or bool(self._promised)

    def _check_tasks(self, name: str) -> None:
        if self._open_tasks is None:
            raise RegistrationError(f"The tool {name!r} runs only as a task, and the server has none (tasks=None).")

    def _changed(self, change: Change | None, feature: Addable, count: int) -> None:
        if not isinstance(feature, ResourceLister):
            self._anonymous += count * feature.access.allow_anonymous
            self._interactive += count * feature.interactive
        if isinstance(feature, Tool) and feature.task is not None:
            self._task_tools += count
            if self._task_tools == 1 and self._open_tasks is not None:
                self._open_tasks()
        if isinstance(feature, Prompt):
            self._completing_prompts += count * bool(feature.completers)
        if isinstance(feature, ResourceTemplate):
            self._completing_templates += count * bool(feature.completers)
        if isinstance(feature, Resource):
            self._pages += count * is_page(feature.uri)
        if isinstance(feature, Resource | ResourceTemplate | ResourceLister):
            self._reported += count * _reports_changes(feature)
        self._update_offered()
        if change is not None:
            self._publish(change)

    def always_offer(self, capability: str) -> None:
        """Declare a capability from now on, whatever features there are."""
        self._always_offered.add(capability)
        self._update_offered()

    def _update_offered(self) -> None:
        offered = {*self._always_offered, *self._promised, *self._offered_lists()}
        completes_prompts = "prompts" in offered and self._completing_prompts > 0
        completes_resources = "resources" in offered and self._completing_templates > 0
        if completes_prompts or completes_resources:
            offered.add("completions")
        if self._open_tasks is not None and self._task_tools > 0:
            offered.add("tasks")
        if "resources" in offered and (self._reported > 0 or "resources" not in self._promised):
            offered.add("subscriptions")
        if "resources" in offered and self._pages > 0:
            offered.add("apps")
        if "resources" in offered and len(self.skills) > 0:
            offered.add("skills")
        self.offered = frozenset(offered)

    def _offered_lists(self) -> Iterator[str]:
        """Yield the capabilities of the lists that the server has."""
        protocol = self._options.protocol
        has_resources = bool(len(self.resources) or len(self.templates) or len(self.listers))
        if _is_declared(option=protocol.offer_tools, has_features=len(self.tools) > 0):
            yield "tools"
        if _is_declared(option=protocol.offer_resources, has_features=has_resources):
            yield "resources"
        if _is_declared(option=protocol.offer_prompts, has_features=len(self.prompts) > 0):
            yield "prompts"


class _Decided:
    """Hides and shows features as rules of visibility do, whatever they are called afterwards: a transform.

    Args:
        rules: The rules.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._visibility = Visibility()
        for rule in rules:
            self._visibility.add(rule)

    def __call__(self, feature: AnyFeature) -> AnyFeature:
        """Return the feature with the option that decides whether clients see it."""
        return replace(feature, enabled=self._visibility.decide(feature, default=feature.enabled))


def _is_built_in(feature: Addable) -> bool:
    return not isinstance(feature, ResourceLister) and feature.is_built_in


def _reports_changes(feature: Resource | ResourceTemplate | ResourceLister) -> bool:
    """Return whether changes can be reported: by this server, or by the other one that has the resource."""
    return isinstance(feature, ResourceLister) or feature.upstream is None or feature.watch is not None


def _is_declared(*, option: bool | None, has_features: bool) -> bool:
    """Return whether a capability is declared: by the option, or, if that is None, if there are features."""
    return has_features if option is None else option


def _switched_off(options: ServerOptions) -> Iterator[str]:
    """Yield the capabilities that an option switches off."""
    protocol = options.protocol
    offers = {"tools": protocol.offer_tools, "resources": protocol.offer_resources, "prompts": protocol.offer_prompts}
    for capability, is_offered in offers.items():
        if is_offered is False:
            yield capability
