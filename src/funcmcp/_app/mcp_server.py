"""`MCPServer`, the class that authors use: it registers functions as features and runs the server.

What serves the features is in `funcmcp._serving.composition`; the public methods here are for authors only.
"""

from __future__ import annotations

import inspect
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from funcmcp._adapters.asgi.application import ASGIApplication
from funcmcp._app import launch
from funcmcp._app.direct_calls import DirectCalls
from funcmcp._app.option_errors import all_are_parameters, explains_options, unknown_option
from funcmcp._authoring.calling.route_handler import route_handler
from funcmcp._authoring.calling.services import Services
from funcmcp._authoring.calling.unknown_arguments import ArgumentRules, checked_policy
from funcmcp._authoring.features.decorators import features_of, is_of_cell, with_name
from funcmcp._authoring.features.options import checked_options
from funcmcp._authoring.features.permissions import AccessOptions, access_of
from funcmcp._authoring.features.prompts import PROMPT
from funcmcp._authoring.features.resources import LISTER, RESOURCE, checked_scheme, checked_uri
from funcmcp._authoring.features.tools import MYPY, TOOL
from funcmcp._authoring.results.content import icon_list
from funcmcp._objects.public_names import public
from funcmcp._server.catalog.features import Prompt, Resource, ResourceTemplate, Tool
from funcmcp._server.catalog.registry import RegistrationError
from funcmcp._server.catalog.visibility import visibility_rule
from funcmcp._server.limits import Limits
from funcmcp._server.options import ProtocolOptions, ServerInfo, ServerOptions
from funcmcp._serving.composition import ServerRuntime, runtime_of
from funcmcp._transports.http.options import HTTPOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Sequence
    from os import PathLike
    from typing import Literal, Self, Unpack

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from funcmcp._adapters.asgi.in_process_calls import Application
    from funcmcp._adapters.asgi.openapi_tools import ASGIToolsOptions, Document
    from funcmcp._adapters.openapi.document_source import LoadedDocument, Source
    from funcmcp._adapters.openapi.remote_tools import OpenAPIToolsOptions
    from funcmcp._app.launch import Transport
    from funcmcp._auth.authenticator import Authenticator
    from funcmcp._auth.policy import Auth
    from funcmcp._authoring.calling.unknown_arguments import UnknownArguments
    from funcmcp._authoring.features.decorators import FeatureKind
    from funcmcp._authoring.features.extensions import Extension, MethodOptions
    from funcmcp._authoring.features.folder_resources import FileOptions
    from funcmcp._authoring.features.prompts import PromptOptions
    from funcmcp._authoring.features.resources import ResourceOptions
    from funcmcp._authoring.features.tools import (
        TheseOptionsAre_read_only_destructive_idempotent_open_world_title,
        ThisOptionIsCalled_read_only,
        ToolOptions,
    )
    from funcmcp._providers.provider import Provider
    from funcmcp._providers.skills import SkillOptions
    from funcmcp._server.catalog.transformed import AnyTransform
    from funcmcp._server.middleware import Middleware
    from funcmcp._server.options import ShowErrors
    from funcmcp._state.key_values import StateStore
    from funcmcp._state.sessions.store import SessionStore
    from funcmcp._state.tasks.store import TaskStore

    Maker = Callable[..., Any]

F = TypeVar("F", bound="Callable[..., Any]")


def on_instance(method: F) -> F:
    """Make a method explain two mistakes: ``mcp = MCPServer`` without parentheses, and an unknown option."""

    @wraps(method)
    def checked(*args: Any, **options: Any) -> Any:
        if not args or not isinstance(args[0], MCPServer):
            raise TypeError(
                f'MCPServer.{method.__name__} was called on the class, not on a server: write mcp = MCPServer("name").'
            )
        if options and not all_are_parameters(method, options):
            raise unknown_option(method, options)
        return method(*args, **options)

    return cast("F", checked)


_CONSTRUCTOR_OPTIONS = frozenset({"auth", "extensions", "lax", "middleware", "unknown_arguments"})
"""Options that have no effect after the construction, so that a server would accept more than its author expects."""


@public("funcmcp")
class MCPServer(DirectCalls, ASGIApplication):
    """An MCP server. It is also an ASGI application: ``uvicorn server:mcp`` serves it.

    Args:
        name: The server's name, as clients see it.
        instructions: Guidance for the client's model on how to use the server.
        version: The server's own version.
        info: Title, description, icons and website of the server.
        http: Options of HTTP: paths of the endpoints, accepted hosts and origins, proxies, rates.
        auth: Authenticates callers: an authenticator such as `funcmcp.auth.APIKeys`, or `Auth` with one and more
            options. With None every caller may use everything.
        sessions: Where the server stores sessions of the handshake revisions (before 2026-07-28). ``"signed"`` stores
            them in their ids, which every process with the same keys can check. ``"memory"`` stores them in this
            process, which also allows subscriptions, `list_changed` and resuming broken streams. A store, such as
            `funcmcp.redis.RedisSessions`, does the same for several instances. None is the stateless mode: there are
            no session ids, clients need no `initialize`, and tools can't ask clients of these revisions anything.
        protocol: Revisions and capabilities of the server, and page size and caching of its lists.
        limits: How much one process accepts; see docs/reference/limits.md.
        show_errors: Exceptions whose text clients get when a tool, resource or prompt raises them: True for all
            exceptions, an exception type, or a list of types. For other exceptions clients get a neutral sentence with
            an error id; the log has the traceback under the same id. The text of `ToolError` is always sent.
        middleware: Functions around every request, the outermost first; see `funcmcp.middleware`.
        tasks: Where the server stores the tasks of tools with ``task=``. ``"memory"`` stores them in this process; a
            store, such as `funcmcp.tasks.RedisTasks`, in a place that several processes share. None: calls never
            become tasks.
        state: Where the server stores `Context.state`, the values of its callers across calls. ``"memory"`` stores them
            in this process; a store, such as `funcmcp.redis.RedisState`, in a place that several processes share.
        lax: Whether arguments of tools are converted, such as ``"5"`` to 5 and strings with JSON to objects.
        unknown_arguments: What happens to arguments that a tool or prompt does not have. ``"refuse"`` makes the call an
            error that names the closest argument. ``"ignore"`` drops them, for clients that add their own, except for
            names that are close to that of an argument that the call does not have. ``"drop"`` drops all of them.
        extensions: Extensions of the protocol that the server declares, with their methods; see
            `funcmcp.extensions.Extension`. Those of funcmcp's own features need no entry.

    Raises:
        ValueError: An option has an invalid value, or the keys in the environment are invalid.
        TypeError: An option is unknown or has the wrong type.

    Example:
        ```python
        mcp = MCPServer("Orders", version="1.0.0", http=HTTPOptions(sse="/sse"), protocol=ProtocolOptions(page_size=50))
        ```
    """

    @explains_options
    def __init__(  # noqa: PLR0913 - one parameter for each concern
        self,
        name: str,
        *,
        instructions: str | None = None,
        version: str = "0.1.0",
        info: ServerInfo | None = None,
        http: HTTPOptions | None = None,
        auth: Authenticator | Auth | None = None,
        sessions: SessionStore | Literal["signed", "memory"] | None = "signed",
        protocol: ProtocolOptions | None = None,
        limits: Limits | None = None,
        show_errors: ShowErrors = False,
        middleware: Sequence[Middleware] = (),
        tasks: TaskStore | Literal["memory"] | None = "memory",
        state: StateStore | Literal["memory"] = "memory",
        lax: bool = False,
        unknown_arguments: UnknownArguments = "refuse",
        extensions: Sequence[Extension] = (),
    ) -> None:
        info = info or ServerInfo()
        options = ServerOptions(
            name,
            version,
            instructions,
            info=replace(info, icons=icon_list(info.icons)),
            protocol=protocol or ProtocolOptions(),
            limits=limits or Limits(),
            show_errors=show_errors,
        )
        rules = ArgumentRules(lax, checked_policy(unknown_arguments, name))
        self._services = Services(rules, options.limits.result_bytes)
        self._runtime = ServerRuntime(
            options,
            self._services,
            http=http or HTTPOptions(),
            auth=None if auth is None else _auth(auth),
            sessions=sessions,
            middleware=middleware,
            tasks=tasks,
            state=state,
        )
        self._server = self._runtime.server
        self._of_cells: dict[tuple[Any, ...], Any] = {}
        super().__init__(self._runtime)
        if extensions:
            from funcmcp._app.extending import add_extensions  # noqa: PLC0415 - few servers have extensions

            add_extensions(self._server, self._services, extensions)

    if not TYPE_CHECKING:  # type checkers report unknown attributes themselves

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError that names funcmcp's counterpart of an attribute of other frameworks."""
            from funcmcp._text.other_frameworks import SERVER_ATTRIBUTES  # noqa: PLC0415 - only errors need it

            message = f"MCPServer has no attribute {name!r}"  # Python adds ". Did you mean ...?"
            if name in SERVER_ATTRIBUTES:
                message += f". Use {SERVER_ATTRIBUTES[name]}"
            raise AttributeError(message, name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; raise AttributeError for options that would have no effect after the construction."""
        if name in _CONSTRUCTOR_OPTIONS:
            raise AttributeError(
                f"{name} can't be changed after the construction. Write {type(self).__name__}(..., {name}=...)",
                name=name,
                obj=self,
            )
        super().__setattr__(name, value)

    @property
    def name(self) -> str:
        """The server's name."""
        return self._server.options.name

    @property
    def lax(self) -> bool:
        """Whether arguments are converted. Choose it in the constructor; ``lax=`` of a tool overrides it."""
        return self._services.argument_rules.lax

    @property
    def unknown_arguments(self) -> UnknownArguments:
        """What happens to unknown arguments. Choose it in the constructor; an option of a feature overrides it."""
        return self._services.argument_rules.unknown

    @property
    def paths(self) -> list[str]:
        """The paths of HTTP requests that the server answers: of the endpoint, sign-in, probes, and custom routes.

        Another application that has a route for each of them, such as ``Route(path, mcp)`` of Starlette, answers
        all its other paths as before. Call it after the last `custom_route`. Variables are written as in Starlette.
        """
        return self._runtime.paths

    @property
    def services(self) -> Services:
        """The services that functions get by the types of their parameters; see docs/guides/tools.md.

        Register a service with ``mcp.services.register_factory(Database, Database.connect, scope="app")`` or
        ``mcp.services.register_value(Settings, settings)``. Parameters of its type are not arguments of the tool.
        """
        return self._services

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(self, name: str | None = None, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...

    if not MYPY:

        @overload
        def tool(
            self, name: str | None = None, /, *, readonly: object, **options: object
        ) -> ThisOptionIsCalled_read_only: ...

        @overload
        def tool(
            self, name: str | None = None, /, *, annotations: object, **options: object
        ) -> TheseOptionsAre_read_only_destructive_idempotent_open_world_title: ...

    @on_instance
    def tool(self, function: Any = None, /, **options: Any) -> Any:
        """Register a function as a tool: ``@mcp.tool``, ``@mcp.tool("name", ...)`` or ``mcp.tool(function)``.

        The function itself does not change. Its name, docstring and type hints become the tool's name, title,
        description and schemas; options override them.

        Returns:
            The function, or a decorator if only options are passed.

        Raises:
            RegistrationError: The function can't be a tool, an option is invalid, or the name is taken.
        """
        return self._register(function, options, TOOL)

    @overload
    def prompt(self, function: F, /) -> F: ...

    @overload
    def prompt(self, name: str | None = None, /, **options: Unpack[PromptOptions]) -> Callable[[F], F]: ...

    @on_instance
    def prompt(self, function: Any = None, /, **options: Any) -> Any:
        """Register a function as a prompt: ``@mcp.prompt`` or ``@mcp.prompt("name", ...)``.

        The function's parameters are the prompt's arguments. It returns a string, a content block, a `Message`, a list
        of these, or a `PromptResult`.

        Returns:
            The function, or a decorator if only options are passed.

        Raises:
            RegistrationError: The function can't be a prompt, an option is invalid, or the name is taken.
        """
        return self._register(function, options, PROMPT)

    @on_instance
    def resource(self, uri: str, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Return a decorator that registers a function as a resource: ``@mcp.resource("menu://today")``.

        A URI with variables, such as ``menu://categories/{category_id}``, is a template, and the variables are the
        function's parameters. The function returns a string, bytes, a value that is sent as JSON, `Contents` or a list
        of them, or None if the resource does not exist.

        Raises:
            RegistrationError: The URI is invalid or taken, an option is invalid, or the function can't be a resource.
        """
        return self._registering(RESOURCE.maker(options, uri=checked_uri(uri)))

    @on_instance
    def method(self, name: str, /, **options: Unpack[MethodOptions]) -> Callable[[F], F]:
        """Return a decorator that serves a method of an extension: ``@mcp.method("com.example/search")``.

        The params of a request are the function's parameters, as the arguments of a tool are. The function returns an
        object: a dict, a dataclass, a model or a TypedDict. Clients of 2025-11-25 and later can use the method.

        Args:
            name: The value of ``method`` in requests, with a prefix that you own.
            options: Who may use the method, its limits, and the extension that clients must declare; see
                docs/guides/extensions.md.

        Raises:
            RegistrationError: The name is malformed or taken, an option is invalid, or the function can't be a method.
        """
        # Few servers have extensions.
        from funcmcp._app.extending import add_method  # noqa: PLC0415
        from funcmcp._authoring.features.extensions import checked_method  # noqa: PLC0415

        checked_method(name, options)

        def register(function: F) -> F:
            add_method(self._server, self._services, function, name, options)
            return function

        return register

    @on_instance
    def resource_lister(self, scheme: str, /, **access: Unpack[AccessOptions]) -> Callable[[F], F]:
        """Return a decorator for a function that lists resources of a scheme: ``@mcp.resource_lister("menu")``.

        The server calls the function each time that a client lists resources. The function returns `ResourceInfo`
        objects. Register what reads them with `resource`, usually as a template.

        Raises:
            RegistrationError: The scheme is invalid or has a list already, or an option is invalid.
        """
        return self._registering(LISTER.maker(access, scheme=checked_scheme(scheme)))

    @on_instance
    def add_files(self, path: str | PathLike[str], uri: str, **options: Unpack[FileOptions]) -> None:
        """Serve a file, or the files of a folder, as resources: ``mcp.add_files("docs", "docs://")``.

        The files of a folder are one template, such as ``docs://{path*}``, which clients can complete, and a list. A
        read returns the file as it is then. Hidden files, and links that lead out of the folder, are not served.

        Args:
            path: The file or the folder.
            uri: The URI of the file, or what the URIs of the folder's files begin with.
            options: Which files are served, limits, and the options of a resource; see docs/guides/files.md.

        Raises:
            RegistrationError: The path does not exist, the URI is invalid or taken, or an option is invalid.
        """
        # Few servers need this module.
        from funcmcp._authoring.features.folder_resources import file_features  # noqa: PLC0415

        for feature in file_features(path, uri, options, self._services):
            self._server.catalog.add(feature)

    @on_instance
    def add_skills(self, folder: str | PathLike[str], **options: Unpack[SkillOptions]) -> None:
        """Serve the skills of a folder: ``mcp.add_skills("skills")``.

        A folder with a SKILL.md is a skill. Its files are resources, such as ``skill://deploy/SKILL.md``, and clients
        that know skills get a list with their digests. Needs ``pip install "funcmcp[skills]"``.

        Args:
            folder: A skill, or a folder with skills in it or below it.
            options: Which files are served, under which URIs and for whom; see docs/guides/skills.md.

        Raises:
            RegistrationError: The folder does not exist, a skill is not valid, a URI is taken, or an option is invalid.
            ModuleNotFoundError: PyYAML is not installed.
        """
        # Few servers need this module.
        from funcmcp._providers.skills import SkillFolder, SkillsProvider  # noqa: PLC0415

        skills = SkillFolder(folder, options, self._services)
        features = skills.features()
        if options.get("reload"):
            self.add_provider(SkillsProvider(skills))
            return
        try:
            for feature in features:
                self._server.catalog.add(feature)
        except RegistrationError as error:
            raise RegistrationError(f"{error} For skills, pass prefix= to add_skills.") from None

    @on_instance
    def add(self, owner: object) -> None:
        """Register all methods of a class or an object that are marked with ``@tool``, ``@resource`` or ``@prompt``.

        A class is instantiated for each request. Services are injected into its constructor by type. Of a module, the
        marked functions are registered.

        Raises:
            RegistrationError: Nothing is marked, a marked method can't be a feature, or a name is taken.
        """
        if inspect.isroutine(owner):
            raise RegistrationError(
                "mcp.add takes a module, or a class or an object with marked methods. "
                f"Write mcp.tool({owner.__name__}) for a function."
            )
        features = features_of(owner, self._services)
        if not features:
            raise RegistrationError(f"{owner!r} has nothing marked with @tool, @resource or @prompt of funcmcp.")
        for feature in features:
            self._server.catalog.add(feature)

    @on_instance
    def tools_from_asgi(
        self, app: Application, openapi: Document = "/openapi.json", **options: Unpack[ASGIToolsOptions]
    ) -> None:
        """Register the operations of an ASGI application as tools. Calls stay in this process.

        Args:
            app: The application, such as one of FastAPI.
            openapi: The application's OpenAPI document, or the path at which the application serves it.
            options: Which operations become tools and how they are called; see docs/guides/existing.md.

        Raises:
            RegistrationError: There is no document, an operation can't be a tool, or a name is taken.
        """
        # Few servers need these modules.
        from funcmcp._adapters.asgi.openapi_tools import tools_from_asgi  # noqa: PLC0415

        for tool in tools_from_asgi(app, openapi, options, self._services):
            self._server.catalog.add(tool)

    @on_instance
    def tool_search(  # noqa: PLR0913 - keyword-only options, each with a default
        self,
        *,
        always_visible: Collection[str] = (),
        always_visible_tags: Collection[str] = (),
        max_results: int = 10,
        result_characters: int = 12_000,
        search_tool_name: str = "search_tools",
        call_tool_name: str = "call_tool",
        whole_list_clients: Collection[str] = (),
        allow_anonymous: bool = False,
    ) -> None:
        """Replace the list of tools by a search: clients get a tool that finds tools, and one that calls them.

        All tools can still be called by their names. See docs/guides/tool-search.md.

        Args:
            always_visible: Names of tools that stay in the list.
            always_visible_tags: Tags of tools that stay in the list.
            max_results: The number of tools that a search returns, from 1 to 50.
            result_characters: The characters of JSON that a search returns at most, at least 1,000.
            search_tool_name: The name of the tool that searches.
            call_tool_name: The name of the tool that calls others.
            whole_list_clients: Names of clients, as in their ``clientInfo``, that get the list of all tools.
            allow_anonymous: Whether callers without credentials may search, on a server with `auth`. They find only
                tools with ``allow_anonymous=True``.

        Raises:
            RegistrationError: An option is wrong, a name is taken, or the server has a search already.
        """
        from funcmcp._app.tool_search import add_tool_search, names_in  # noqa: PLC0415 - few servers have a search
        from funcmcp._server.tool_search import SearchOptions  # noqa: PLC0415 - as above

        options = SearchOptions(
            search_tool_name,
            call_tool_name,
            names_in("always_visible", always_visible),
            names_in("always_visible_tags", always_visible_tags),
            max_results,
            result_characters,
            names_in("whole_list_clients", whole_list_clients),
        )
        add_tool_search(self._server, self._services, options, allow_anonymous=allow_anonymous)

    @classmethod
    def from_openapi(cls, openapi: Source, name: str | None = None, **options: Unpack[OpenAPIToolsOptions]) -> Self:
        """Return a server whose tools call a remote API, by the API's OpenAPI document.

        Args:
            openapi: The document: its URL, its file, or a dict. OpenAPI 3 or Swagger 2.0, in JSON or YAML.
            name: The server's name. By default it is the document's title.
            options: Which operations become tools and how they are called; see docs/guides/openapi.md.

        Raises:
            RegistrationError: There is no document, or no operation can be a tool.

        Example:
            ```python
            mcp = MCPServer.from_openapi("https://api.example.com/openapi.json", select=["orders"], auth=token)
            ```
        """
        # Few servers need these modules.
        from funcmcp._adapters.openapi.document_source import load  # noqa: PLC0415

        document = load(openapi)
        server = cls(name or document.title or "API")
        server.tools_from_openapi(document, **options)
        return server

    @on_instance
    def tools_from_openapi(self, openapi: Source | LoadedDocument, **options: Unpack[OpenAPIToolsOptions]) -> None:
        """Register the operations of a remote API as tools, by the API's OpenAPI document.

        Args:
            openapi: The document: its URL, its file, or a dict. OpenAPI 3 or Swagger 2.0, in JSON or YAML.
            options: Which operations become tools and how they are called; see docs/guides/openapi.md.

        Raises:
            RegistrationError: There is no document, no operation can be a tool, or a name is taken.
        """
        # Few servers need these modules.
        from funcmcp._adapters.openapi.document_source import LoadedDocument, load  # noqa: PLC0415
        from funcmcp._adapters.openapi.remote_tools import tools_from_openapi  # noqa: PLC0415

        document = openapi if isinstance(openapi, LoadedDocument) else load(openapi)
        for tool in tools_from_openapi(document, options, self._services):
            self._server.catalog.add(tool)

    def remove_tool(self, name: str) -> None:
        """Remove a tool; raise KeyError if it does not exist."""
        self._server.catalog.remove_key(Tool, name)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt; raise KeyError if it does not exist."""
        self._server.catalog.remove_key(Prompt, name)

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or a template; raise KeyError if it does not exist."""
        try:
            self._server.catalog.remove_key(Resource, uri)
        except KeyError:
            self._server.catalog.remove_key(ResourceTemplate, uri)

    @on_instance
    def mount(
        self, server: MCPServer | Provider, prefix: str | None = None, *, transforms: Sequence[AnyTransform] = ()
    ) -> None:
        """Serve the features of another server, too: ``mcp.mount(billing, prefix="billing")``.

        A tool or prompt ``add`` is called ``billing_add`` here, and the resource ``data://info`` is
        ``data://billing/info``. Features that the other server gets later appear here, too. Its lifespans, services,
        middleware, scopes, `show_errors` and custom routes apply to its own features. See docs/guides/servers.md.

        Args:
            server: The other server, which can still be served by itself; or a `funcmcp.upstreams.Upstream`, which
                leads to a server elsewhere.
            prefix: The first part of the names and URIs. None leaves them unchanged.
            transforms: Change the features here before they get the prefix; see `funcmcp.transforms`.

        Raises:
            TypeError: The server is neither an `MCPServer` nor an `Upstream`, or a transform is not callable.
            ValueError: The prefix is malformed, or the path of a custom route is taken.
            RegistrationError: A name is taken, the servers would mount each other, the other server has `auth` and this
                one has none, or it lacks a protocol revision of this one.
            RuntimeError: The server has started, and the other one has lifespans.
        """
        if not isinstance(server, MCPServer):
            from funcmcp._providers.provider import Provider  # noqa: PLC0415 - few servers have providers

            if isinstance(server, Provider):
                self.add_provider(server, prefix, transforms=transforms)
                return
            raise TypeError(
                f"mcp.mount takes an MCPServer or an Upstream, not {type(server).__name__}. A server at a URL is an "
                "Upstream: mcp.mount(Upstream('https://example.com/mcp')). An ASGI application mounts the server "
                "instead: Starlette(routes=[Mount('/shop', mcp)], lifespan=mcp.lifespan)."
            )
        # Few servers need this module.
        from funcmcp._app.mounting import mount  # noqa: PLC0415

        mount(self._runtime, runtime_of(server), prefix, transforms)

    @on_instance
    def add_transform(self, transform: AnyTransform) -> None:
        """Change all features of this server, also those of mounted servers and those that it gets later.

        See docs/guides/transforms.md.

        Args:
            transform: An object of `funcmcp.transforms`, or a function that takes a feature.

        Raises:
            TypeError: The transform is not callable, or returns something else than features.
            RegistrationError: A name would be taken twice, or a feature can't be changed in this way.
        """
        self._server.catalog.add_transform(transform)

    @on_instance
    def add_provider(
        self, provider: Provider, prefix: str | None = None, *, transforms: Sequence[AnyTransform] = ()
    ) -> None:
        """Serve features that are computed at run time; see docs/guides/providers.md.

        Args:
            provider: Computes the features, such as a `funcmcp.providers.FileSystemProvider`.
            prefix: The first part of the names and URIs, as for `mount`. None leaves them unchanged.
            transforms: Change the features before they get the prefix; see `funcmcp.transforms`.

        Raises:
            TypeError: The provider is not a `Provider`.
            ValueError: The prefix is malformed.
            RuntimeError: The provider belongs to a server already.
        """
        from funcmcp._app.providing import add_provider  # noqa: PLC0415 - few servers have providers

        add_provider(self._runtime, provider, prefix, transforms)

    @on_instance
    def enable(
        self,
        names: Collection[str] | None = None,
        *,
        tags: Collection[str] | None = None,
        components: Collection[Literal["tool", "resource", "template", "prompt", "method"]] | None = None,
        only: bool = False,
    ) -> None:
        """Show features to clients: those that meet all conditions, or all features without conditions.

        The rules of `enable` and `disable` also apply to features that are registered later. The last rule that matches
        a feature decides. Clients are notified of what changes.

        Args:
            names: Names of tools and prompts, and URIs of resources and templates.
            tags: Tags of which the feature must have at least one.
            components: Kinds of features.
            only: Hide all other features, and forget the previous rules.

        Raises:
            TypeError: An argument is one string, and not a collection of strings.
            ValueError: A kind of feature is unknown.
        """
        self._server.catalog.set_visibility(visibility_rule(names, tags, components, shows=True, only=only))

    @on_instance
    def disable(
        self,
        names: Collection[str] | None = None,
        *,
        tags: Collection[str] | None = None,
        components: Collection[Literal["tool", "resource", "template", "prompt", "method"]] | None = None,
    ) -> None:
        """Hide features from clients: lists do not contain them, and a use of them is one of an unknown feature.

        Arguments and errors are those of `enable`.

        Args:
            names: Names of tools and prompts, and URIs of resources and templates.
            tags: Tags of which the feature must have at least one.
            components: Kinds of features.
        """
        self._server.catalog.set_visibility(visibility_rule(names, tags, components, shows=False))

    def notify_resource_updated(self, uri: str) -> None:
        """Notify the clients that subscribed to a resource that it has changed. It may be called from any thread."""
        self._runtime.publish(uri)

    def notify_resources_changed(self) -> None:
        """Notify clients that a function of `resource_lister` lists other resources than before.

        Features that are registered or removed need no call: the server notifies clients of these changes itself. It
        may be called from any thread.
        """
        self._runtime.publish(None)

    @on_instance
    def add_middleware(self, middleware: Middleware) -> None:
        """Add a function around every request, inside of the existing middleware.

        Args:
            middleware: An async function ``(context, call_next) -> Reply``; see `funcmcp.middleware`.

        Raises:
            TypeError: The middleware is not callable.
        """
        self._server.add_middleware(middleware)

    @on_instance
    def add_lifespan(self, function: F) -> F:
        """Add code that runs when the server starts and when it stops, inside the existing ones: ``@mcp.add_lifespan``.

        The server starts with its ASGI server, its host application (see `lifespan`), stdio or a client in memory. On
        Azure Functions, and under an ASGI server without lifespan, the first request starts it.

        Args:
            function: An async function with one ``yield``: the part before it runs at the start, the part behind it at
                the end. Contexts have the yielded value as `lifespan_context`. Several functions yield dicts, which are
                joined. A function with ``@asynccontextmanager`` is as good. If it has a parameter, it gets the server.

        Returns:
            The function.

        Raises:
            TypeError: The function is not an async generator function and has no ``@asynccontextmanager``.
            RuntimeError: The server has started.
        """
        self._services.lifespans.add(function, self)
        return function

    @on_instance
    def custom_route(
        self,
        path: str,
        methods: Sequence[str] = ("GET",),
        *,
        timeout: float | None = 60.0,
        **access: Unpack[AccessOptions],
    ) -> Callable[[F], F]:
        """Return a decorator that serves a function at a path beside the endpoint: ``@mcp.custom_route("/health")``.

        The function gets a `funcmcp.http.Request`, if it has a parameter. It returns a string, bytes, a JSON
        value, None for status 204, or a `funcmcp.http.Response`. On a server with `auth`, callers need valid
        credentials unless ``allow_anonymous=True``.

        Args:
            path: The path, below the mount path. ``{name}`` stands for one segment, which is in `path_params`.
            methods: The HTTP methods. GET includes HEAD.
            timeout: Seconds after which the function is cancelled; None for no limit.
            access: Who may use the route.

        Raises:
            ValueError: The path is malformed or taken, or a method is unknown.
            RegistrationError: An option does not exist, or one of the access is invalid.
            RuntimeError: The routes have been registered in a function app.
        """
        # Few servers need this module.
        from funcmcp._transports.http.endpoints import custom_routes  # noqa: PLC0415

        checked_path, checked_methods = custom_routes.checked_path(path), custom_routes.checked_methods(methods)
        rule = access_of(path, checked_options(access, AccessOptions))

        def register(function: F) -> F:
            handler = route_handler(function, self._services)
            route = custom_routes.CustomRoute(checked_path, checked_methods, handler, rule, timeout)
            self._runtime.add_route(route)
            return function

        return register

    @on_instance
    def trace(self, tracer_provider: TracerProvider | None = None, *, exceptions: bool = False) -> None:
        """Create an OpenTelemetry span for each request and each run of a task. Call it before serving.

        Needs ``pip install "funcmcp[otel]"``. Without this call the server loads nothing of OpenTelemetry. See
        docs/guides/telemetry.md.

        Args:
            tracer_provider: Creates the spans. The default is the global one of the process.
            exceptions: Whether spans contain the texts and the tracebacks of exceptions, and not only their types. The
                texts may quote arguments.
        """
        from funcmcp._adapters.opentelemetry import (  # noqa: PLC0415 - vendor code
            TaskTracing,
            flush_spans,
            tracing,
            tracing_upstreams,
        )

        self._runtime.around_upstreams.append(tracing_upstreams(tracer_provider))
        self._server.add_middleware(tracing(tracer_provider, exceptions=exceptions))
        self._runtime.on_close.append(flush_spans(tracer_provider))
        tasks = self._server.open_tasks()
        if tasks is not None:
            tasks.trace_with(TaskTracing(tracer_provider, exceptions=exceptions))

    @on_instance
    def measure(self, meter_provider: MeterProvider | None = None) -> None:
        """Measure requests and tasks with OpenTelemetry. Call it once, before serving.

        Needs ``pip install "funcmcp[otel]"``. Without this call the server loads nothing of OpenTelemetry, and counts
        nothing. See docs/guides/telemetry.md.

        Args:
            meter_provider: Creates the instruments. The default is the global one of the process.
        """
        from funcmcp._adapters.opentelemetry_metrics import flush_metrics  # noqa: PLC0415 - vendor code

        self._measure(meter_provider)
        self._runtime.on_close.append(flush_metrics(meter_provider))  # Prometheus asks for them itself

    @on_instance
    def serve_metrics(
        self,
        port: int | None = None,
        *,
        host: str = "127.0.0.1",
        path: str = "/metrics",
        **access: Unpack[AccessOptions],
    ) -> None:
        """Measure requests and tasks, and serve the metrics for Prometheus. Call it once, before serving.

        Needs ``pip install "funcmcp[prometheus]"``. It takes the place of `measure`. The metrics are those of
        prometheus-client's registry of the process, with those that the author adds to it. With several processes, a
        request gets the metrics of one of them.

        Args:
            port: A port of its own, without authentication: only Prometheus should reach it. None serves the metrics at
                a path of the server, for callers with credentials.
            host: The address that the port listens on.
            path: The path, without a port.
            access: Who may read the metrics there, as for `custom_route`.

        Raises:
            ValueError: The server has no `auth`, and there is no port; or the path is taken.
            RegistrationError: An option of the access is invalid.
        """
        if port is None and self._server.guard is None:
            raise ValueError(
                "Everybody could read the metrics: the server has no auth=. Pass port= for a port of its own."
            )
        from funcmcp._adapters.prometheus import MetricsPort, content_of_metrics, provider  # noqa: PLC0415 - vendor code

        if port is None:
            self.custom_route(path, **access)(content_of_metrics)
            self._runtime.metrics_path = path
        else:
            self._runtime.metrics_port = MetricsPort(host, port)
        self._measure(provider())

    def _measure(self, meter_provider: MeterProvider | None) -> None:
        from funcmcp._adapters.opentelemetry_metrics import (  # noqa: PLC0415 - vendor code
            Meters,
            RequestMetrics,
            TaskMetrics,
            UpstreamMetrics,
            measure_sessions,
        )
        from funcmcp._server.tasks.backlog import BacklogWatch  # noqa: PLC0415 - few servers have tools with task=

        meters = Meters(self.name, meter_provider)
        requests = RequestMetrics(meters, self._server.load)
        self._server.add_middleware(requests.measure)
        self._runtime.wrap_exchange(requests.count_refusals)
        self._runtime.around_upstreams.append(UpstreamMetrics(meters, lambda: self._runtime.all_upstreams).measure)
        sessions = self._runtime.sessions_in_memory
        if sessions is not None:
            measure_sessions(meters, sessions)
        tasks = self._server.open_tasks()
        if tasks is not None:
            backlog = BacklogWatch(tasks.store)
            tasks.measure_with(TaskMetrics(meters, backlog), backlog)

    @on_instance
    def task_tools(self, *, wait: float = 20.0) -> None:
        """Offer the tasks of tools with ``task=`` as tools, for clients that have no tasks.

        Each of these tools gets a second one, ``start_<name>``, with the same arguments. It returns the id of a task.
        The tools ``task_status``, ``task_result``, ``cancel_task``, ``answer_task`` and ``list_tasks`` take the id.

        Args:
            wait: Seconds that ``task_result`` waits for the end of a task at most, up to 300. Many clients wait for a
                minute only.

        Raises:
            ValueError: The wait is not valid.
            RegistrationError: The server has no tasks (``tasks=None``), or a name is taken.
        """
        from funcmcp._app.task_tools import add_task_tools  # noqa: PLC0415 - few servers offer them

        add_task_tools(self._server, self._services, wait)

    @on_instance
    def run(self, transport: Transport | None = None, *, host: str | None = None, port: int | None = None) -> None:
        """Serve until the process gets a signal to stop or, on stdio, until the client closes stdin.

        Args:
            transport: ``"stdio"`` serves one client on stdin and stdout. ``"http"`` (or ``"streamable-http"``) serves
                Streamable HTTP. ``"sse"`` also opens an HTTP+SSE endpoint, at `HTTPOptions.sse` or else at /sse. The
                default is stdio, and HTTP if a host or a port is given or if the Azure Functions host started the
                process. HTTP needs ``pip install "funcmcp[server]"``.
            host: The address that HTTP listens on. The default is the environment variable ``FUNCMCP_HOST``, or
                127.0.0.1.
            port: The port that HTTP listens on; 0 picks a free one. The default is the environment variable
                ``FUNCMCP_PORT``, the port that the Azure Functions host has set, the variable ``PORT``, or 8000.

        Raises:
            ValueError: The transport is unknown, the host or port is invalid, or one is given for stdio.
            RuntimeError: An event loop is running in this thread; use `run_async` there.
            SystemExit: The address is not available, a variable has no valid port, uvicorn is not installed, or stdin
                or stdout is not open. A line on stderr has the reason.
        """
        launch.run(self, transport, host=host, port=port)

    @on_instance
    async def run_async(
        self, transport: Transport | None = None, *, host: str | None = None, port: int | None = None
    ) -> None:
        """Serve as `run` does, in a running event loop.

        The arguments and errors are those of `run`, except that an address that is not available raises OSError, and a
        variable without a valid port raises ValueError.
        """
        await launch.run_async(self, transport, host=host, port=port)

    def stop(self) -> None:
        """Stop what `run`, `run_async` or `funcmcp run` serves in this process. It can be called from any thread.

        The server stops as after a signal: streams end, calls in flight may finish within a few seconds, services and
        lifespans are closed, and `run` or `run_async` returns. The method itself returns at once. Cancelling the task
        of `run_async` has the same effect. An ASGI server that serves the object is stopped by its own means.
        """
        self._runtime.stop()

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:  # noqa: ARG002 - frameworks pass themselves
        """Start the server for the ``async with`` block, and close its services and connections at the end of it.

        An application that mounts the server enters it in its own lifespan or takes it as its lifespan:
        ``Starlette(routes=[Mount("/shop", mcp)], lifespan=mcp.lifespan)``. It is not needed if the MCPServer itself is
        the ASGI application.

        Args:
            app: Ignored. Starlette and FastAPI pass the application.
        """
        await self._runtime.start()
        try:
            yield
        finally:
            await self._runtime.aclose()

    def _register(self, function: Any, options: dict[str, Any], kind: FeatureKind) -> Any:
        if callable(function):
            return self._registering(kind.maker(options))(function)
        return self._registering(kind.maker(with_name(function, options)))

    def _registering(self, make: Maker) -> Callable[[F], F]:
        def register(function: F) -> F:
            feature = make(function, services=self._services)
            if is_of_cell(function):
                self._add_of_cell(feature)
            else:
                self._server.catalog.add(feature)
            return function

        return register

    def _add_of_cell(self, feature: Any) -> None:
        """Add a feature of a notebook's cell, in the place of the one that an earlier run of a cell added."""
        place = type(feature), feature.key, feature.version
        former = self._of_cells.get(place)
        if former is not None and self._server.catalog.has(former, itself=True):
            self._server.catalog.exchange(former, feature)
        else:
            self._server.catalog.add(feature)
        self._of_cells[place] = feature


def _auth(auth: Authenticator | Auth) -> Auth:
    """Return the options of authentication."""
    from funcmcp._auth.policy import Auth  # noqa: PLC0415 - only servers with authentication need it

    return auth if isinstance(auth, Auth) else Auth(auth)
