"""`FastMCP` and `MCPServer`: funcmcp's server under the names and with the options of FastMCP and the official SDK."""

from __future__ import annotations

import inspect
import logging
from collections import OrderedDict
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar, overload

from funcmcp._app.direct_calls import DirectContext
from funcmcp._compat.completion import CompletionHandler, complete_unknown, with_completion
from funcmcp._compat.components import Component, Prompt, Resource, ResourceTemplate, Tool
from funcmcp._compat.context import Context, context_variable, get_context
from funcmcp._compat.direct_calls import note_refusal
from funcmcp._compat.mounts import mount
from funcmcp._compat.options import (
    checked_server_options,
    duplicates_policy,
    http_options,
    icons_of,
    ignored_mount_options,
    ignored_server_options,
    protocol_options,
    sessions_option,
)
from funcmcp._compat.resource_functions import needs_template
from funcmcp._compat.security import DEFAULT_RESOURCE_SECURITY
from funcmcp._compat.server_registration import ServerRegistration
from funcmcp._compat.server_settings import Settings, ignored_variables, options_of_environment
from funcmcp._compat.session_visibility import ClientRules, apply_rules
from funcmcp._compat.standalone import check_not_classmethod, component_of
from funcmcp._compat.transports import note_ignored
from funcmcp._compat.unknown_tools import answered_unknown
from funcmcp._compat.versions import checked_version
from funcmcp._objects.mappings import only, without_none
from funcmcp._objects.public_names import public
from funcmcp._server.options import ServerInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    from funcmcp._compat.auth import AuthProvider
    from funcmcp._compat.extensions import ServerExtension
    from funcmcp._compat.local_provider import LocalProvider
    from funcmcp._compat.openapi import RouteMap
    from funcmcp._compat.provider import Provider
    from funcmcp._compat.provider_features import ProvidedComponents
    from funcmcp._compat.security import ResourceSecurity
    from funcmcp._protocol.revisions import Revision
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.connections.conversation import Rules
    from funcmcp._server.middleware import CallNext

F = TypeVar("F", bound="Callable[..., Any]")

_logger = logging.getLogger("funcmcp.compat")


@public("funcmcp.compat")
class FastMCP(ServerRegistration):
    """A server with the names of FastMCP 2 to 4 and of ``mcp.server.fastmcp`` of the official SDK.

    Errors of functions are shown to clients, arguments are converted, and calls have no time limit, as there. The
    methods of `funcmcp.MCPServer` work, too.

    Args:
        name: The server's name.
        instructions: Guidance for the client's model.
        version: The server's version.
        options: The options of FastMCP and the official SDK, and those of `funcmcp.MCPServer`; see
            docs/guides/from-fastmcp.md.

    Raises:
        TypeError: An option does not exist, or funcmcp has nothing for it. The text says what to use.
    """

    _shows_errors = True
    _default_policy = "warn"
    _default_name: str | None = None
    _default_version = "0.1.0"
    _protocol_changes: Mapping[str, Any] = {}
    _tool_class: type[Tool] = Tool
    _prompt_class: type[Prompt] = Prompt
    _resource_class: type[Resource] = Resource
    _template_class: type[ResourceTemplate] = ResourceTemplate

    if not TYPE_CHECKING:

        def __class_getitem__(cls, _: Any) -> Any:
            """Return the class itself: ``FastMCP[AppContext]`` means the same."""
            return cls

    def __init__(
        self, name: str | None = None, instructions: str | None = None, version: str | None = None, **options: Any
    ) -> None:
        passed = options
        options = {**options_of_environment(), **without_none(passed)}
        chosen = checked_server_options(options, type(self).__name__)
        self.settings: Settings = Settings(options)
        self._auth = options.get("auth")
        self.auth_provider: AuthProvider | None = chosen.pop("auth_provider", None)
        self._described = only(options, ("title", "description", "website_url", "icons", "dependencies"))
        self.served_routes: list[Any] = []
        self._on_duplicate = duplicates_policy(options, self._default_policy)
        self.client_log_level: str | None = options.get("client_log_level")
        self._sends_tags = not self.is_of_sdk and options.get("include_fastmcp_meta") is not False
        self._completion = None
        self.resource_security: ResourceSecurity | None = passed.get("resource_security", DEFAULT_RESOURCE_SECURITY)
        self._states = OrderedDict()
        self._components = {}
        self.provided_components: ProvidedComponents | None = None
        self.client_rules: ClientRules = ClientRules()
        self._features = {}
        show_errors = chosen.pop("show_errors", None)
        if show_errors is None:
            show_errors = self._shows_errors and not options.get("mask_error_details")
        self._unknown_arguments_option = chosen.pop("unknown_arguments", None)
        self.task_default: bool = chosen.get("tasks") is True
        if isinstance(chosen.get("tasks"), bool):
            del chosen["tasks"]  # FastMCP's option: whether tools run as tasks unless they say otherwise
        native: dict[str, Any] = {key: chosen.pop(key) for key in ("limits", "state", "tasks", "auth") if key in chosen}
        native.update(sessions_option(passed, self.settings))
        super().__init__(
            name or self._default_name or type(self).__name__,
            instructions=instructions or None,
            version=checked_version(version) or self._default_version,
            info=chosen.pop("info", None) or _info(options),
            http=chosen.pop("http", None) or http_options(self.settings),
            protocol=chosen.pop("protocol", None) or replace(protocol_options(options, 0.0), **self._protocol_changes),
            show_errors=show_errors,
            middleware=[self._set_context],
            lax=not options.get("strict_input_validation"),
            unknown_arguments=self._unknown_arguments("tool"),
            **native,
        )
        server_class = type(self).__name__
        note_ignored(self, f"{server_class} of funcmcp.compat ignores options", ignored_server_options(options))
        note_ignored(self, "funcmcp.compat ignores variables of the environment", ignored_variables())
        self._include_tags = options.get("include_tags")
        self._exclude_tags = options.get("exclude_tags")
        self._apply_options(options)
        self._serve_routes_of(self.auth_provider)

    def _apply_options(self, options: Mapping[str, Any]) -> None:
        """Add the middleware, the lifespan and the tools of the constructor's options, and show or hide by tags."""
        self.added_providers: list[Any] = []
        self.added_extensions: dict[str, ServerExtension] = {}
        self._begin_middleware(options.get("telemetry_mode"))
        if self._include_tags is not None:
            self.enable(tags=self._include_tags, only=True)
        if self._exclude_tags is not None:
            self.disable(tags=self._exclude_tags)
        for middleware in options.get("middleware") or ():
            self.add_middleware(middleware)
        if options.get("lifespan") is not None:
            self.add_lifespan(options["lifespan"])
        for tool in options.get("tools") or ():
            self.add_tool(tool)
        for transform in options.get("transforms") or ():
            self.add_transform(transform)
        for provider in options.get("providers") or ():
            self.add_provider(provider)

    @property
    def instructions(self) -> str | None:
        """The guidance for the client's model."""
        return self._server.results.instructions

    @instructions.setter
    def instructions(self, text: str | None) -> None:
        self._server.results.instructions = text

    @property
    def version(self) -> str:
        """The server's version."""
        return self._mcp_server.version

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def title(self) -> str | None:
        """The title for people. Choose it in the constructor."""
        return self._described.get("title")

    @property
    def description(self) -> str | None:
        """The description. Choose it in the constructor."""
        return self._described.get("description")

    @property
    def website_url(self) -> str | None:
        """The URL of the server's website. Choose it in the constructor."""
        return self._described.get("website_url")

    @property
    def icons(self) -> list[Any]:
        """The icons. Choose them in the constructor."""
        return list(self._described.get("icons") or ())

    @property
    def dependencies(self) -> list[str]:
        """The packages of the option ``dependencies``, which funcmcp does not install."""
        return list(self._described.get("dependencies") or ())

    @property
    def auth(self) -> Any:
        """The authentication of callers. Choose it in the constructor."""
        return self._auth

    @property
    def lifespan_result(self) -> Any:
        """What the lifespan yielded; an empty dict if the server has none."""
        return self._services.lifespans.value

    @property
    def _tool_manager(self) -> ToolManager:
        return ToolManager(self)

    # Decorators

    @overload
    def tool(self, name_or_fn: F, /, **options: Any) -> F: ...

    @overload
    def tool(self, name_or_fn: str | None = None, /, *names: Any, **options: Any) -> Callable[[F], F]: ...

    def tool(self, name_or_fn: Any = None, /, *names: Any, **options: Any) -> Any:
        """Register a function as a tool: ``@mcp.tool``, ``@mcp.tool()``, ``@mcp.tool("name")`` or ``mcp.tool(fn)``.

        Args:
            name_or_fn: The function or the name.
            names: The title and the description, as the official SDK takes them by position.
            options: The options of FastMCP and the official SDK.

        Returns:
            The function, or a decorator.
        """
        options = {**dict(zip(("title", "description"), names, strict=False)), **options}
        return self._decorated(self._tool_class, name_or_fn, options)

    @overload
    def prompt(self, name_or_fn: F, /, **options: Any) -> F: ...

    @overload
    def prompt(self, name_or_fn: str | None = None, /, *names: Any, **options: Any) -> Callable[[F], F]: ...

    def prompt(self, name_or_fn: Any = None, /, *names: Any, **options: Any) -> Any:
        """Register a function as a prompt, as `tool` does."""
        options = {**dict(zip(("title", "description"), names, strict=False)), **options}
        return self._decorated(self._prompt_class, name_or_fn, options)

    def resource(self, uri: str, **options: Any) -> Callable[[F], F]:
        """Return a decorator that registers a function as a resource, or as a template if the URI has variables."""
        if callable(uri):
            raise TypeError(
                "The @resource decorator was used incorrectly. It needs a URI: write @mcp.resource('menu://today')."
            )
        name = options.pop("name", None)

        kind = self._template_class if "{" in uri else self._resource_class

        def decorate(function: F) -> F:
            check_not_classmethod(function, "resource")
            self._check_resource(uri, function)
            self.register(kind.from_function(function, uri=uri, name=name, **options))
            return function

        return decorate

    def _check_resource(self, uri: str, function: Callable[..., Any]) -> None:
        """Raise ValueError if the parameters of a function are not those that its URI needs in the original."""
        if needs_template(function, uri):
            raise ValueError("URI template must contain at least one parameter")

    @overload
    def completion(self, function: F, /) -> F: ...

    @overload
    def completion(self, /) -> Callable[[F], F]: ...

    def completion(self, function: Any = None, /) -> Any:
        """Register a function that completes arguments of all prompts and variables of all templates.

        Works as ``@mcp.completion`` and as ``@mcp.completion()``. The function gets the reference to the prompt or
        template, the argument and the context of ``mcp.types``, and returns a ``Completion`` or None, as in the
        official SDK.
        """
        if function is None:
            return self.completion
        self.add_completion_handler(function)
        return function

    def add_completion_handler(self, function: Callable[..., Any]) -> None:
        """Register a function that completes arguments, as `completion` does."""
        self._completion = CompletionHandler(function, self._services.threads.run)
        catalog = self._server.catalog
        for registry in (catalog.prompts, catalog.templates):
            for feature in tuple(registry):
                registry.remove(feature.key)
                catalog.add(with_completion(feature, self._completion))

    def _decorated(self, kind: type[Component], name_or_fn: Any, options: dict[str, Any]) -> Any:
        if isinstance(name_or_fn, Component):
            return self.register(name_or_fn)
        check_not_classmethod(name_or_fn, kind.kind)
        if name_or_fn is not None and options.get("name") is not None and not callable(name_or_fn):
            raise TypeError("Cannot specify both a name as first argument and as keyword argument. Pass one of them.")
        if not (name_or_fn is None or isinstance(name_or_fn, str) or callable(name_or_fn)):
            raise TypeError(
                f"First argument to @{kind.kind} must be a function, string, or None, got {type(name_or_fn)}"
            )
        if callable(name_or_fn):
            self.register(kind(name_or_fn, options.pop("name", None), **options))
            return name_or_fn
        name = name_or_fn if name_or_fn is not None else options.pop("name", None)
        options.pop("name", None)

        def decorate(function: Any) -> Any:
            if isinstance(function, Component):
                function = function.fn
            check_not_classmethod(function, kind.kind)
            self.register(kind(function, name, **options))
            return function

        return decorate

    # HTTP APIs

    @classmethod
    def from_openapi(  # type: ignore[override]  # noqa: PLR0913, PLR0917 - FastMCP's parameters
        cls,
        openapi_spec: dict[str, Any],
        client: Any = None,
        name: str = "OpenAPI Server",
        route_maps: list[RouteMap] | None = None,
        route_map_fn: Any = None,
        mcp_component_fn: Any = None,
        mcp_names: dict[str, str] | None = None,
        tags: set[str] | None = None,
        validate_output: bool = True,  # noqa: FBT001, FBT002
        **settings: Any,
    ) -> Self:
        """Return a server whose tools and resources call a remote API, as FastMCP does.

        Args:
            openapi_spec: The document.
            client: An ``httpx2.AsyncClient``, whose `base_url` is that of the API. By default it is the document's.
            name: The server's name.
            route_maps: What operations become.
            route_map_fn: Gets an operation and what the route maps say, and returns a `MCPType` or None.
            mcp_component_fn: Gets an operation and its component, and changes the component.
            mcp_names: Names by the ids of operations.
            tags: Tags of all components.
            validate_output: Whether tools have the output schemas of the document.
            settings: The options of the server.

        Raises:
            ValueError: The document is not valid, or names no server and there is no client.
        """
        from funcmcp._compat.openapi_provider import OpenAPIProvider  # noqa: PLC0415 - few servers need it

        provider = OpenAPIProvider(
            openapi_spec,
            client,
            route_maps=route_maps,
            route_map_fn=route_map_fn,
            mcp_component_fn=mcp_component_fn,
            mcp_names=mcp_names,
            tags=tags,
            validate_output=validate_output,
        )
        server = cls(name, **settings)
        server.add_provider(provider)
        return server

    @classmethod
    def from_fastapi(  # noqa: PLR0913, PLR0917 - FastMCP's parameters
        cls,
        app: Any,
        name: str | None = None,
        route_maps: list[RouteMap] | None = None,
        route_map_fn: Any = None,
        mcp_component_fn: Any = None,
        mcp_names: dict[str, str] | None = None,
        httpx_client_kwargs: dict[str, Any] | None = None,
        tags: set[str] | None = None,
        **settings: Any,
    ) -> Self:
        """Return a server whose tools and resources call a FastAPI application in this process, as FastMCP does.

        Args:
            app: The application.
            name: The server's name. By default it is the application's title.
            route_maps: As for `from_openapi`.
            route_map_fn: As for `from_openapi`.
            mcp_component_fn: As for `from_openapi`.
            mcp_names: As for `from_openapi`.
            httpx_client_kwargs: Options of the ``httpx2.AsyncClient`` that calls the application.
            tags: Tags of all components.
            settings: The options of the server.
        """
        from funcmcp._compat.openapi_provider import client_of_app  # noqa: PLC0415 - few servers need it

        return cls.from_openapi(
            app.openapi(),
            client_of_app(app, httpx_client_kwargs or {}),
            name or app.title,
            route_maps=route_maps,
            route_map_fn=route_map_fn,
            mcp_component_fn=mcp_component_fn,
            mcp_names=mcp_names,
            tags=tags,
            **settings,
        )

    # Components as objects

    def add_tool(self, tool: Any, name: str | None = None, *names: Any, **options: Any) -> Any:
        """Register a tool: a function with the options of `tool`, or a `Tool`."""
        component = component_of(tool)
        if component is not None:
            return self.register(component)
        options = {**dict(zip(("title", "description"), names, strict=False)), **options}
        return self.register(self._tool_class(tool, name, **options))

    def add_prompt(self, prompt: Any, **options: Any) -> Any:
        """Register a prompt: a function with the options of `prompt`, or a `Prompt`."""
        return self.register(component_of(prompt) or self._prompt_class(prompt, **options))

    def add_resource(self, resource: Any) -> Any:
        """Register a resource: an object such as `TextResource`, or a function with the decorator `resource`."""
        return self.register(component_of(resource) or resource)

    def add_template(self, template: Any) -> Any:
        """Register a resource template."""
        return self.register(component_of(template) or template)

    def add_resource_fn(self, fn: Any, uri: str, **options: Any) -> None:
        """Register a function as a resource."""
        self.resource(uri, **options)(fn)

    # The server's own features

    def get_context(self) -> Context:
        """Return the context of the request that runs now, as ``mcp.get_context()`` of the official SDK 1.x.

        Raises:
            RuntimeError: No request runs.
        """
        return get_context()

    # Providers

    def add_provider(
        self, provider: Any, prefix: str | None = None, *, namespace: str = "", transforms: Sequence[Any] = ()
    ) -> None:
        """Serve the components of a provider, after those of this server and of the providers before.

        Args:
            provider: A `Provider`, one of `funcmcp.providers`, or another server.
            prefix: The prefix of names and URIs.
            namespace: The prefix under its name in FastMCP.
            transforms: Transforms of `funcmcp.transforms`, which apply before the prefix.

        Raises:
            TypeError: The value is not a provider.
            ValueError: The prefix is malformed.
        """
        from funcmcp._compat.extensions import add_extensions_of  # noqa: PLC0415 - few servers have providers
        from funcmcp._compat.provider_server import add_provider  # noqa: PLC0415 - as above

        add_provider(self, provider, prefix or namespace or None, transforms)
        add_extensions_of(self, provider)

    def add_components(self, provider: Provider, prefix: str | None, transforms: Sequence[Any]) -> None:
        """Ask a provider of FastMCP for components in each request."""
        from funcmcp._compat.provider_server import add_components  # noqa: PLC0415 - few servers have providers

        add_components(self, provider, prefix, transforms)

    def add_native_provider(self, provider: Any, prefix: str | None, transforms: Sequence[Any]) -> None:
        """Add a provider of `funcmcp.providers`."""
        super().add_provider(provider, prefix, transforms=transforms)

    @property
    def providers(self) -> list[Any]:
        """The providers: the components of this server itself, and those that were added, in this order."""
        return [self.local_provider, *self.added_providers]

    @property
    def local_provider(self) -> LocalProvider:
        """The components of this server itself as a provider."""
        from funcmcp._compat.local_provider import ServerComponents  # noqa: PLC0415 - few programs need it

        return ServerComponents(self)

    def add_extension(self, extension: ServerExtension) -> None:
        """Declare an extension, and serve what it adds.

        Raises:
            RuntimeError: The server has started.
            TypeError: The identifier of the extension is malformed.
            ValueError: The server has the extension already, or one of its methods.
        """
        from funcmcp._compat.extensions import add_extension  # noqa: PLC0415 - few servers have extensions

        add_extension(self, extension)

    @property
    def _local_provider(self) -> LocalProvider:
        return self.local_provider

    # Other servers

    @classmethod
    def as_proxy(cls, backend: Any, *, mode: str | None = None, **settings: Any) -> Self:
        """Return a server that passes everything on to another one, as `funcmcp.compat.create_proxy` does.

        Args:
            backend: The other server, as for `create_proxy`.
            mode: Is ignored, as by `create_proxy`.
            settings: The options of the server, such as its name.
        """
        # Its proxy is a server, which is defined here, so it is loaded when it is first used.
        proxy = import_module("funcmcp._compat.proxy")

        del mode
        if cls is FastMCP:
            front: Self = proxy.FastMCPProxy(client_factory=lambda: backend, **settings)
            return front
        server = cls(settings.pop("name", None) or "FastMCPProxy", **settings)
        proxy.add_upstreams(server, backend)
        return server

    def mount(
        self,
        server: Any,
        prefix: Any = None,
        *,
        namespace: str | None = None,
        transforms: Sequence[Any] = (),
        tool_names: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        """Serve the features of another server, too, under a prefix. Of equal names, the first one counts.

        Args:
            server: The other server.
            prefix: The prefix. Old versions of FastMCP take it first.
            namespace: The prefix under its name in FastMCP 3.
            transforms: Transforms of `funcmcp.transforms` for the features of this mount.
            tool_names: Other names of tools, by their names in the other server, before the prefix.
            options: Other options of FastMCP, which change nothing here.

        Raises:
            TypeError: An option does not exist, or funcmcp has nothing for it.
        """
        note_ignored(self, "mount of funcmcp.compat ignores options", ignored_mount_options(options))
        if isinstance(server, str):
            server, prefix = prefix, server
        if server is self:
            raise ValueError("Cannot mount a server onto itself")
        mount(self, server, prefix or namespace, transforms, tool_names, self.resource_security)
        if getattr(server, "added_extensions", None):
            from funcmcp._compat.extensions import add_extensions_of  # noqa: PLC0415 - few servers have extensions

            add_extensions_of(self, server)

    async def import_server(self, server: Any, prefix: Any = None, **options: Any) -> None:
        """Do the same as `mount`."""
        self.mount(server, prefix, **options)

    # Middleware and contexts

    def add_transform(self, transform: Any) -> None:
        """Add a transform behind the existing ones.

        Args:
            transform: One of `funcmcp.compat`, one of the author's own that inherits from `funcmcp.compat.Transform`,
                or one of `funcmcp.transforms`.

        Raises:
            TypeError: It is something else.
            RegistrationError: The server is mounted already, and the transform is the author's own.
        """
        from funcmcp._compat.transforms import BuiltInTransform, Visibility  # noqa: PLC0415 - as above
        from funcmcp._compat.transforms import Transform as CompatTransform  # noqa: PLC0415 - as above
        from funcmcp._server.catalog.transformed import Transform  # noqa: PLC0415 - as above

        catalog = self._server.catalog
        if isinstance(transform, CompatTransform) and (self.has_view or not isinstance(transform, BuiltInTransform)):
            self.view.add(transform)
        elif isinstance(transform, Visibility):
            catalog.set_visibility(transform.rule)
        elif isinstance(transform, BuiltInTransform):
            catalog.fix_visibility()
            for native in transform.native():
                super().add_transform(native)
            for rule in transform.rules():
                catalog.set_visibility(rule)
        elif isinstance(transform, Transform) or inspect.isroutine(transform):
            super().add_transform(transform)
        else:
            name = transform.__name__ if isinstance(transform, type) else type(transform).__name__
            raise TypeError(
                f"{name} is not a transform. Use one of funcmcp.compat or funcmcp.transforms, or write a class that "
                "inherits from funcmcp.compat.Transform."
            )

    def add_tool_transformation(self, tool_name: str, transformation: Any) -> None:
        """Add a `ToolTransform` for one tool, as FastMCP 2 does."""
        from funcmcp._compat.transforms import ToolTransform  # noqa: PLC0415 - few servers have transforms

        self.add_transform(ToolTransform({tool_name: transformation}))

    async def _set_context(self, request: RequestContext, call_next: CallNext) -> Any:
        """Set the context of the request while it runs, and what its client sees: a middleware."""
        outer = context_variable.get()
        rules: Rules | None = self.client_rules.of(request)
        if rules is None and outer is not None and outer.fastmcp is self:
            rules = outer.session_rules
        if rules is not None:
            by_author = isinstance(request, DirectContext) and request.by_author
            await apply_rules(self._server, request, rules, by_author=by_author)
        with self._active_context(request):
            reply = await call_next(request)
            note_refusal(request)
            if self._completion is not None and request.request.method == "completion/complete":
                return await complete_unknown(self._completion, request, reply)
            return reply if self.is_of_sdk else answered_unknown(request, reply)

    @property
    def newest_revision(self) -> Revision:
        """The newest revision of the protocol that the server speaks."""
        return self._server.revisions[self._server.supported[0]]


@public("funcmcp.compat")
def create_proxy(target: Any, *, mode: str | None = None, **settings: Any) -> FastMCP:
    """Return a server that passes everything on to another one, or to those of a configuration.

    No header of a client is passed on: a token is for one server.

    Args:
        target: A server, a URL, the path of a script, a target of `funcmcp.client.Client`, or a dict with
            ``mcpServers``.
        mode: Is ignored: a client of either era reaches a server of either era.
        settings: The options of the server, such as its name.

    Raises:
        TypeError: The target is of another type.
        ValueError: The configuration has no server that can be used.
    """
    return FastMCP.as_proxy(target, mode=mode, **settings)


class ToolManager:
    """What programs read of the frameworks' private ``mcp._tool_manager``."""

    def __init__(self, server: FastMCP) -> None:
        self._server = server

    @property
    def _tools(self) -> dict[str, Component]:
        return {tool.name: tool for tool in self.list_tools()}

    def list_tools(self) -> list[Component]:
        """Return the tools as they were registered."""
        return [tool for tool in self._server._components.values() if tool.kind == "tool"]  # noqa: SLF001 - a part of it

    def get_tool(self, name: str) -> Component | None:
        """Return a tool, or None."""
        return self._tools.get(name)


def _info(options: dict[str, Any]) -> ServerInfo:
    """Return how the server describes itself."""
    return ServerInfo(
        title=options.get("title"),
        description=options.get("description"),
        icons=icons_of(options.get("icons")),
        website_url=options.get("website_url"),
    )
