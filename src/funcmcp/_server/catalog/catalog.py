"""The features of a server, and the capabilities that follow from them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from funcmcp._protocol.uri_template import with_lower_scheme
from funcmcp._server.catalog.features import Prompt, Resource, ResourceLister, ResourceTemplate, Tool
from funcmcp._server.catalog.registry import RegistrationError, Registry
from funcmcp._server.catalog.visibility import Visibility
from funcmcp._server.connections.hub import PROMPTS, RESOURCES, TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from funcmcp._server.catalog.visibility import Rule
    from funcmcp._server.connections.hub import Change
    from funcmcp._server.options import ServerOptions

    Addable: TypeAlias = Tool | Resource | ResourceTemplate | ResourceLister | Prompt


class Catalog:
    """All features of a server.

    Counters follow each change, so that adding a feature costs the same however many features there are.

    Args:
        options: Whether a capability is declared without features.
        publish: Is called with the change of a list after each change.
        open_tasks: Is called for the first tool with tasks; None if the server has none.

    Attributes:
        offered: Names of the capabilities that the server declares: "tools", "resources", "prompts", "completions",
            "logging", "tasks".
        switched_off: Names of the capabilities that the server never declares. Their methods are unknown to it.
        visibility: Decides which features clients see. Features that they do not see are unknown to them.
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
        self.offered: frozenset[str] = frozenset()
        self.switched_off = frozenset(_switched_off(options))
        self.visibility = Visibility()
        self._options = options
        self._publish = publish
        self._open_tasks = open_tasks
        self._anonymous = 0  # features for callers without credentials
        self._interactive = 0
        self._task_tools = 0
        self._completing_prompts = 0
        self._completing_templates = 0
        self._registries: dict[type, Registry[Any]] = {
            Tool: self.tools,
            Resource: self.resources,
            ResourceTemplate: self.templates,
            ResourceLister: self.listers,
            Prompt: self.prompts,
        }
        changes = {Tool: TOOLS, Prompt: PROMPTS}
        for kind, registry in self._registries.items():
            registry.listeners.append(partial(self._changed, changes.get(kind, RESOURCES)))
        for kind in (Tool, Resource, ResourceTemplate, Prompt):
            self._registries[kind].is_visible = self.visibility.allows
        self._update_offered()

    def add(self, feature: Addable) -> None:
        """Add a feature and notify clients; raise RegistrationError if its key is taken, or it can't work here."""
        if isinstance(feature, Tool) and feature.task is not None and feature.task.mode == "required":
            self._check_tasks(feature.name)
        self._registries[type(feature)].add(feature)

    def remove(self, feature: Addable) -> None:
        """Remove a feature and notify clients; raise KeyError if it does not exist."""
        self._registries[type(feature)].remove(feature.key)

    def set_visibility(self, rule: Rule) -> None:
        """Add a rule that hides or shows features, and notify clients of what it changes."""
        self.visibility.add(rule)
        for kind in (Tool, Resource, ResourceTemplate, Prompt):
            self._registries[kind].update_visibility()

    def features(self) -> Iterator[Tool | Resource | ResourceTemplate | Prompt]:
        """Yield all tools, resources, resource templates and prompts."""
        yield from self.tools
        yield from self.resources
        yield from self.templates
        yield from self.prompts

    @property
    def has_anonymous(self) -> bool:
        """Whether callers without credentials may use some feature."""
        return self._anonymous > 0

    @property
    def has_interactive(self) -> bool:
        """Whether some feature may send messages to the client before its answer."""
        return self._interactive > 0

    def _check_tasks(self, name: str) -> None:
        if self._open_tasks is None:
            raise RegistrationError(f"The tool {name!r} runs only as a task, and the server has none (tasks=None).")

    def _changed(self, change: Change, feature: Addable, count: int) -> None:
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
        self._update_offered()
        self._publish(change)

    def _update_offered(self) -> None:
        options = self._options
        has_resources = bool(len(self.resources) or len(self.templates) or len(self.listers))
        offered = {"logging"}
        if _is_declared(option=options.protocol.offer_tools, has_features=len(self.tools) > 0):
            offered.add("tools")
        if _is_declared(option=options.protocol.offer_resources, has_features=has_resources):
            offered.add("resources")
        if _is_declared(option=options.protocol.offer_prompts, has_features=len(self.prompts) > 0):
            offered.add("prompts")
        completes_prompts = "prompts" in offered and self._completing_prompts > 0
        completes_resources = "resources" in offered and self._completing_templates > 0
        if completes_prompts or completes_resources:
            offered.add("completions")
        if self._open_tasks is not None and self._task_tools > 0:
            offered.add("tasks")
        self.offered = frozenset(offered)


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
