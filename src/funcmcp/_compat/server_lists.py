"""The lists of a server's components, in all versions, and which of them clients see: a part of `FastMCP`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from funcmcp._compat.content import PromptResult, meta_of
from funcmcp._compat.context import context_variable
from funcmcp._compat.direct_calls import CalledTool, called, plain_arguments
from funcmcp._compat.editable import ListedPrompt, ListedResource, ListedTemplate, PromptAnswer, ReadResult
from funcmcp._compat.errors import MissingFeatureError, NotFoundError, as_fastmcp_error, raise_as_fastmcp
from funcmcp._compat.listed_components import ListedTool, with_tags
from funcmcp._compat.live_components import live
from funcmcp._compat.overrides import pending_of
from funcmcp._compat.resource_functions import texts_of
from funcmcp._compat.server_middleware import ServerMiddleware
from funcmcp._compat.versions import newest_matching
from funcmcp._compat.visibility import component_rule
from funcmcp._protocol.errors import MCPError, ResourceNotFound

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Self

    from funcmcp._auth.principal import Principal
    from funcmcp._compat.transform_view import TransformView
    from funcmcp._compat.versions import VersionSpec
    from funcmcp._compat.visibility import ComponentRule
    from funcmcp._protocol.objects import CallToolResult, GetPromptResult
    from funcmcp._server.connections.conversation import Rules

L = TypeVar("L")


class ServerLists(ServerMiddleware):
    """Lists, finds, shows and hides the components of a server."""

    _renders_prompts = False
    """Whether `get_prompt` always returns messages, as in the official SDK 2.x."""

    _raises_tool_errors = True
    """Whether `call_tool` raises the failure of a tool, as in FastMCP."""

    # Visibility

    def enable(  # type: ignore[override] # more options
        self, names: Collection[str] | None = None, *, keys: Collection[str] | None = None, **options: Any
    ) -> Self:
        """Show clients the components that meet all conditions; without conditions, do nothing.

        Args:
            names: Names, or URIs of resources and templates.
            keys: Keys such as ``"tool:add@1.0"``, which `key` of components returns.
            options: ``version``, a `VersionSpec`; ``tags``, ``components`` and ``only``.

        Raises:
            TypeError: An option does not exist, or a condition is not a collection of strings.
            ValueError: A kind of component is unknown, or a key has none.
        """
        only = options.pop("only", False)
        rule = component_rule({"names": names, "keys": keys, **options}, shows=True, only=only)
        self._add_rule(rule)
        self._show_injected()
        return self

    def disable(  # type: ignore[override] # more options
        self, names: Collection[str] | None = None, *, keys: Collection[str] | None = None, **options: Any
    ) -> Self:
        """Hide components from clients. The arguments are those of `enable` but ``only``."""
        rule = component_rule({"names": names, "keys": keys, **options}, shows=False)
        self._add_rule(rule)
        self._show_injected()
        return self

    def _add_rule(self, rule: ComponentRule) -> None:
        if not self.has_view:
            self._server.catalog.set_visibility(rule)
            return
        from funcmcp._compat.transforms import RuleTransform  # noqa: PLC0415 - few servers have such transforms

        self.view.add(RuleTransform(rule))
        self._server.publish_lists()

    # Transforms for each request

    _view: TransformView | None = None

    @property
    def has_view(self) -> bool:
        """Whether transforms are asked by each request."""
        return self._view is not None

    @property
    def view(self) -> TransformView:
        """The transforms that are asked by each request."""
        if self._view is None:
            from funcmcp._compat.transform_view import TransformView  # noqa: PLC0415 - few servers have such transforms

            view = TransformView(self)
            self._server.set_view(view)
            self._view = view
        return self._view

    # Lists

    async def list_tools(self, *, principal: Principal | None = None, **options: Any) -> list[ListedTool]:  # type: ignore[override] # a list of a subclass
        """Return the tools that a principal sees, in all versions; without a principal all that are not hidden.

        With ``run_middleware=False``, no middleware changes the list.
        """
        items = await self._direct_list("tools/list", principal, every_version=True, **options)
        return [with_tags(ListedTool(item), self) for item in items]

    async def list_resources(self, *, principal: Principal | None = None, **options: Any) -> list[ListedResource]:  # type: ignore[override] # as above
        """Return the resources, as `list_tools` does."""
        items = await self._direct_list("resources/list", principal, every_version=True, **options)
        return [with_tags(ListedResource(item), self) for item in items]

    async def list_resource_templates(  # type: ignore[override] # as above
        self, *, principal: Principal | None = None, **options: Any
    ) -> list[ListedTemplate]:
        """Return the resource templates, as `list_tools` does."""
        items = await self._direct_list("resources/templates/list", principal, every_version=True, **options)
        return [with_tags(ListedTemplate(item), self) for item in items]

    async def list_prompts(self, *, principal: Principal | None = None, **options: Any) -> list[ListedPrompt]:  # type: ignore[override] # as above
        """Return the prompts, as `list_tools` does."""
        items = await self._direct_list("prompts/list", principal, every_version=True, **options)
        return [with_tags(ListedPrompt(item), self) for item in items]

    async def get_tools(self) -> dict[str, ListedTool]:
        """Return the tools by name, each in its newest version."""
        return _by(await self.list_tools(), "name")

    async def get_resources(self) -> dict[str, Any]:
        """Return the resources by URI, each in its newest version."""
        return _by(await self.list_resources(), "uri")

    async def get_resource_templates(self) -> dict[str, Any]:
        """Return the resource templates by URI template, each in its newest version."""
        return _by(await self.list_resource_templates(), "uri_template")

    async def get_prompts(self) -> dict[str, Any]:
        """Return the prompts by name, each in its newest version."""
        return _by(await self.list_prompts(), "name")

    # Single components

    async def get_tool(self, name: str, version: VersionSpec | None = None) -> ListedTool | None:
        """Return a tool; None if clients do not see it.

        Args:
            name: The name.
            version: The versions that count. By default it is the newest one.
        """
        if self.has_view:
            return await self._in_view(ListedTool, "tools/list", name, version)
        tools = await self._visible("tools/list", ListedTool)
        return newest_matching((tool for tool in tools if tool.name == name), version)

    async def get_resource(self, uri: Any, version: VersionSpec | None = None) -> ListedResource | None:
        """Return the resource of a URI, as `get_tool` does; None for one that a template has."""
        if self.has_view:
            return await self._in_view(ListedResource, "resources/list", str(uri), version)
        resources = await self._visible("resources/list", ListedResource)
        return newest_matching((item for item in resources if item.uri == str(uri)), version)

    async def get_resource_template(self, uri: Any, version: VersionSpec | None = None) -> ListedTemplate | None:
        """Return the template of a URI that it matches, or of its own text, as `get_tool` does."""
        if self.has_view:
            return await self._in_view(ListedTemplate, "resources/templates/list", str(uri), version)
        from funcmcp._protocol.uri_template import URITemplate  # noqa: PLC0415 - few servers look for templates

        templates = await self._visible("resources/templates/list", ListedTemplate)
        named = [item for item in templates if item.uri_template == str(uri)]
        if not named:
            named = [item for item in templates if URITemplate(item.uri_template).unchecked_match(str(uri)) is not None]
        return newest_matching(named, version)

    async def get_prompt(  # type: ignore[override] # as in FastMCP, and with arguments as in the official SDK
        self, name: str, version: VersionSpec | Mapping[str, Any] | None = None, **options: Any
    ) -> Any:
        """Return a prompt, as `get_tool` does.

        Args:
            name: The name.
            version: The versions that count. By default it is the newest one. With arguments in its place, the messages
                for them are returned, as by the official SDK.
            options: ``arguments`` and ``principal``, with which the messages are returned.
        """
        if isinstance(version, Mapping):
            options["arguments"] = version
        if options or self._renders_prompts or pending_of(self, "prompts/get") is not None:
            return await self.rendered(name, **options)
        return await self.find_prompt(name, None if isinstance(version, Mapping) else version)

    async def find_prompt(self, name: str, version: VersionSpec | None = None) -> ListedPrompt | None:
        """Return a prompt, as `get_tool` does."""
        if self.has_view:
            return await self._in_view(ListedPrompt, "prompts/list", name, version)
        prompts = await self._visible("prompts/list", ListedPrompt)
        return newest_matching((item for item in prompts if item.name == name), version)

    async def rendered(self, name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> GetPromptResult:
        """Return the messages of a prompt, as `MCPServer.get_prompt` of funcmcp does."""
        return await super().get_prompt(name, arguments, **options)

    async def _in_view(self, listed: type[L], method: str, key: str, version: VersionSpec | None) -> L | None:
        """Return what the transforms that are asked by each request have under a name or URI.

        Args:
            listed: The class of definitions. A transform may return a component of its own in place of one.
            method: The method of the list.
            key: The name or URI.
            version: The versions that count.
        """
        del listed
        context = self._author_context(method, self._client_rules())
        component: L | None = await self.view.component(method, key, version, context)
        return component

    def _client_rules(self) -> Rules | None:
        """Return the rules of the client whose request runs; None if it sees what other clients see."""
        context = context_variable.get()
        return None if context is None or context.fastmcp is not self else context.session_rules

    async def _visible(self, method: str, listed: type[Any]) -> list[Any]:
        """Return the components of a list that clients see, or the session of the request that runs, in all versions.

        Those that checks of authorization refuse the caller are left out.

        No middleware takes part, so that middleware itself can look at components.
        """
        features = await self._direct_features(method, self._client_rules())
        registry = self._server.routes.lists[method].registry
        items = [with_tags(listed(registry.describe(feature)), self, feature) for feature in features]
        return [live(item, self) for item in items]

    # Calls

    async def direct_result(self, name: str, arguments: Mapping[str, Any] | None) -> CallToolResult:
        """Return the result of a call of a tool, also if it is an error."""
        return await super().call_tool(name, arguments)

    async def call_tool(  # type: ignore[override] # a specification of versions
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *_: Any,
        version: VersionSpec | None = None,
        raise_on_error: bool | None = None,
        **options: Any,
    ) -> CalledTool:
        """Call a tool of this server without a client.

        Args:
            name: The name.
            arguments: The arguments. Values such as a UUID are passed as their texts.
            version: The versions of which the newest one is called.
            raise_on_error: Raise ToolError if the tool fails. This is the default, except for `MCPServer`.
            options: ``principal``, and ``run_middleware``: whether the call passes the middleware.

        Raises:
            NotFoundError: The tool does not exist in this version.
            ToolError: The tool failed, and *raise_on_error* is not false.
        """
        pending = pending_of(self, "tools/call")
        if pending is not None:
            answer: CalledTool = await pending(name=name, arguments=plain_arguments(arguments))
            return answer
        raises = self._raises_tool_errors if raise_on_error is None else raise_on_error
        if version is not None:
            tool = await self.get_tool(name, version)
            if tool is None:
                raise NotFoundError(f"Unknown tool: {name!r}")
            options["version"] = tool.version
        call = super().call_tool(name, plain_arguments(arguments), **options)
        return await called(name, call, raise_on_error=raises)

    async def read_resource(  # type: ignore[override] # a specification of versions
        self, uri: Any, *, version: VersionSpec | None = None, **options: Any
    ) -> ReadResult:
        """Return the contents of a resource: a result whose ``contents`` have ``content`` and ``mime_type``.

        Raises:
            NotFoundError: The resource does not exist, or not in this version.
            MCPError: It can't be read.
        """
        if version is None:
            return await self._read(str(uri), **options)
        resource = await self.get_resource(uri, version) or await self.get_resource_template(uri, version)
        if resource is None:
            raise NotFoundError(f"Unknown resource: {str(uri)!r}")
        return await self._read(str(uri), version=resource.version, **options)

    async def _read(self, uri: str, **options: Any) -> ReadResult:
        try:
            return ReadResult(await super().read_resource(uri, **options))
        except MCPError as error:
            named = as_fastmcp_error(error, error.__cause__)
            if isinstance(named, MissingFeatureError) and named.message == ResourceNotFound(uri).message:
                raise MissingFeatureError(error.code, f"Unknown resource: {uri!r}", error.data) from error.__cause__
            raise_as_fastmcp(error, error.__cause__)

    async def render_prompt(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        version: VersionSpec | None = None,
        **options: Any,
    ) -> PromptResult | PromptAnswer:
        """Return the messages of a prompt.

        Raises:
            MCPError: The prompt failed.
            NotFoundError: The prompt does not exist, or not in this version.
        """
        if version is None:
            return await self._render(name, arguments, **options)
        prompt: ListedPrompt | None = await self.get_prompt(name, version)
        if prompt is None:
            raise NotFoundError(f"Unknown prompt: {name!r}")
        return await self._render(name, arguments, version=prompt.version, **options)

    async def _render(
        self, name: str, arguments: Mapping[str, Any] | None, **options: Any
    ) -> PromptResult | PromptAnswer:
        try:
            answer = PromptAnswer(await self.rendered(name, texts_of(arguments), **options))
        except MCPError as error:
            raise_as_fastmcp(error, error.__cause__)
        if "input_requests" in answer or answer.get("resultType") == "input_required":
            return answer
        return PromptResult(answer.messages, answer.description, meta_of(answer))


def _by(components: list[Any], attribute: str) -> dict[str, Any]:
    """Return the newest version of each component by an attribute."""
    from funcmcp._compat.versions import version_sort_key  # noqa: PLC0415 - for old programs

    ordered = sorted(components, key=version_sort_key)
    newest = {getattr(component, attribute): component for component in ordered}
    return {getattr(item, attribute): newest[getattr(item, attribute)] for item in components}
