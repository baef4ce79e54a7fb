"""FastMCP's extensions of a server: ``add_extension``, `ServerExtension` and `SkillsExtension`."""

from __future__ import annotations

import copy
import weakref
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from funcmcp._compat.context import get_context
from funcmcp._compat.editable import model_of
from funcmcp._compat.errors import AuthorizationError
from funcmcp._compat.middleware import CallNext, Middleware, MiddlewareContext
from funcmcp._compat.sdk_extensions import add_method, check_identifier
from funcmcp._objects.public_names import public
from funcmcp._protocol.extensions import EXTENSIONS
from funcmcp._server.catalog.transformed import Transform

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Self

    from funcmcp._compat.provider import Provider
    from funcmcp._compat.sdk_extensions import MethodBinding
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.catalog.features import Skill

_SKILLS = "io.modelcontextprotocol/skills"
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


@public("funcmcp.compat")
class ServerExtension:
    """The base class of an extension, which a server gets with ``mcp.add_extension(...)``.

    Attributes:
        identifier: The name: a prefix that you own, and a slash, such as ``com.example/search``.
        auto_register: Whether a server that mounts one with the extension gets a copy of the extension.

    Raises:
        TypeError: The identifier of a subclass is malformed.
    """

    identifier: str
    auto_register: ClassVar[bool] = False
    is_implicit: bool = False
    """Whether a provider or a mounted server has brought the extension with it."""

    _server_ref: weakref.ref[Any] | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "identifier" in vars(cls):
            check_identifier(cls.identifier, cls.__name__)

    @property
    def server(self) -> Any:
        """The server; raises RuntimeError before ``add_extension``."""
        server = None if self._server_ref is None else self._server_ref()
        if server is None:
            raise RuntimeError(
                f"Extension {self.identifier!r} is not bound to a server. Call mcp.add_extension(...) first."
            )
        return server

    def bind(self, server: Any) -> None:
        """Connect the extension with its server."""
        self._server_ref = weakref.ref(server)

    def clone(self) -> Self:
        """Return a copy for another server."""
        clone = copy.deepcopy(self)
        clone._server_ref = None  # noqa: SLF001 - of the same class
        return clone

    def settings(self) -> dict[str, Any]:
        """Return what the server declares with the extension."""
        return {}

    def methods(self) -> Sequence[MethodBinding]:
        """Return the methods of the extension."""
        return ()

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Return what starts and stops with the server."""
        return nullcontext()

    async def intercept_tool_call(self, params: Any, context: Any, call_next: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ARG002 - of subclasses
        """Run around the calls of all tools. ``call_next()`` returns the result of the call."""
        return await call_next()

    def client_settings(self, ctx: Any) -> dict[str, Any] | None:
        """Return the settings with which the client of a request declares the extension; None if it does not."""
        return read_client_extension_settings(ctx, self.identifier)

    def _requires_live_resource(self, uri: str) -> bool:  # noqa: ARG002 - of subclasses
        """Return whether a cache must not serve a resource."""
        return False


def read_client_extension_settings(ctx: Any, identifier: str) -> dict[str, Any] | None:
    """Return the settings with which the client of a request declares an extension; None if it does not.

    Args:
        ctx: The context of the request.
        identifier: The name of the extension.
    """
    meta = getattr(ctx, "meta", None) or (getattr(ctx, "params", None) or {}).get("_meta")
    node: Any = meta
    for name in (_CAPABILITIES, "extensions", identifier):
        node = _member(node, name)
    return dict(node) if isinstance(node, dict) else None


def _member(node: Any, name: str) -> Any:
    get = getattr(node, "get", None)
    return None if get is None else get(name)


class Interception(Middleware):
    """Passes calls of tools through an extension.

    Args:
        extension: The extension.
    """

    def __init__(self, extension: ServerExtension) -> None:
        self._extension = extension

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Return what the extension makes of a call."""

        async def continued() -> Any:
            return await call_next(context)

        return await self._extension.intercept_tool_call(context.message, context.fastmcp_context, continued)


def add_extension(server: Any, extension: ServerExtension) -> None:
    """Declare an extension of a server, and serve what it adds.

    Raises:
        RuntimeError: The server has started.
        TypeError: The identifier is malformed.
        ValueError: The server has the extension already, or a method of the extension.
    """
    check_identifier(getattr(extension, "identifier", None), type(extension).__name__)
    identifier = extension.identifier
    present = server.added_extensions.get(identifier)
    if present is not None and not (present.is_implicit and isinstance(extension, SkillsExtension)):
        raise ValueError(f"Extension {identifier!r} is already registered")
    if present is None and server._services.lifespans.has_started:  # noqa: SLF001 - a part of it
        raise RuntimeError(
            f"Extension {identifier!r} can't be added: the server's lifespan has already started. Add it before."
        )
    extension.bind(server)
    for method in extension.methods():
        add_method(server, identifier, method)
    if identifier not in EXTENSIONS:  # which the server declares itself
        server._server.catalog.extensions[identifier] = extension.settings()  # noqa: SLF001 - as above
    if type(extension).intercept_tool_call is not ServerExtension.intercept_tool_call:
        server.add_middleware(Interception(extension))
    if type(extension).lifespan is not ServerExtension.lifespan:

        def lifespan() -> AbstractAsyncContextManager[None]:
            return extension.lifespan()

        server.add_lifespan(lifespan)
    server.added_extensions[identifier] = extension


def add_extensions_of(server: Any, source: Any) -> None:
    """Add the extensions that a provider needs, and those of a mounted server that it shares.

    Args:
        server: The server that gets them.
        source: The provider or the mounted server.
    """
    needed: Sequence[ServerExtension] = getattr(source, "required_extensions", tuple)()
    shared = [item for item in getattr(source, "added_extensions", {}).values() if item.auto_register]
    for extension in [*needed, *shared]:
        if extension.identifier not in server.added_extensions:
            clone = extension.clone()
            clone.is_implicit = True
            add_extension(server, clone)


def requires_live_resource(server: Any, uri: str) -> bool:
    """Return whether an extension or a provider of a server says that a cache must not serve a resource."""
    extensions = server.added_extensions.values()
    return any(item._requires_live_resource(uri) for item in extensions) or any(  # noqa: SLF001 - FastMCP's name
        provider._owns_skill_resource(uri)  # noqa: SLF001 - as above
        for provider in server.added_providers
        if hasattr(provider, "_owns_skill_resource")
    )


@public("funcmcp.compat")
class SkillsExtension(ServerExtension):
    """The extension for skills. Providers of skills bring it with them.

    Args:
        providers: The providers whose skills clients list. They belong to the server already. None for all of them,
            and for those of mounted servers.

    Raises:
        ValueError: There is no provider, or one is there twice.
    """

    identifier = _SKILLS
    auto_register = True

    def __init__(self, *, providers: Sequence[Provider] | None = None) -> None:
        if providers is not None:
            if not providers:
                raise ValueError("SkillsExtension requires at least one provider")
            if len({id(provider) for provider in providers}) != len(providers):
                raise ValueError("SkillsExtension providers must be unique")
        self._providers = None if providers is None else list(providers)

    def clone(self) -> Self:
        """Return an extension for all providers of another server."""
        return type(self)()

    def bind(self, server: Any) -> None:
        """Connect the extension with its server.

        Raises:
            TypeError: A provider has no skills.
            ValueError: A provider does not belong to the server, or has transforms.
        """
        super().bind(server)
        for provider in self._providers or ():
            self._check(server, provider)
        from funcmcp._compat.provider_server import provided  # noqa: PLC0415 - few servers have skills

        native = server._server  # noqa: SLF001 - a part of it
        provided(server).serve_skills(self.providers, partial(_may_read, server), partial(_has_resource, server))
        native.catalog.always_offer("skills")
        native.routes.add_skills()

    def providers(self) -> Sequence[Provider]:
        """Return the providers whose skills clients list.

        Raises:
            ValueError: One of them has got transforms.
        """
        for provider in self._providers or ():
            self._check(self.server, provider)
        if self._providers is not None:
            return self._providers
        sources = self.server.provided_components.sources
        return [source.provider for source in sources if has_skills(source.provider)]

    @staticmethod
    def _check(server: Any, provider: Provider) -> None:
        if not any(item is provider for item in server.providers):
            raise ValueError(
                "SkillsExtension providers must be registered directly on the same server before the extension"
            )
        if provider.transforms:
            raise ValueError("SkillsExtension does not yet support transformed providers")
        if not has_skills(provider):
            raise TypeError(
                f"{type(provider).__name__} is not a SkillsExtension source; use SkillCatalogProvider to publish skills"
            )

    def _requires_live_resource(self, uri: str) -> bool:
        sources = self._providers
        if sources is None:
            sources = [item.provider for item in self.server.provided_components.sources if has_skills(item.provider)]
        return any(provider._owns_skill_resource(uri) for provider in sources)  # type: ignore[attr-defined] # noqa: SLF001 - FastMCP's name


class ReadableSkills(Transform):
    """Hides the skills of another server whose files are served elsewhere, or which middleware does not let be read.

    Args:
        server: The server that serves them.
    """

    def __init__(self, server: Any) -> None:
        self._server = server

    def __call__(self, feature: Any) -> Any:
        """Return the feature as it is."""
        return feature

    def skill_of(self, skill: Skill) -> Skill:
        """Return the skill with the condition."""
        return replace(skill, shown_if=self._is_readable)

    async def _is_readable(self, skill: Any, request: RequestContext) -> bool:
        resources = self._server._server.catalog.resources  # noqa: SLF001 - a part of it
        served = [resources.get(file.uri) for file in skill.files]
        if any(item is None or item.upstream != file.upstream for item, file in zip(served, skill.files, strict=True)):
            return False
        with self._server.active_context(request):
            return all([await _passes(self._server, file.uri) for file in skill.files])


def has_skills(provider: Any) -> bool:
    """Return whether a provider has entries of skills, under FastMCP's names."""
    return hasattr(provider, "_list_skill_entries") and hasattr(provider, "_get_skill_entry")


async def _may_read(own: Any, uri: str) -> bool:
    """Return whether middleware lets the caller of the request that runs read a resource.

    Args:
        own: The server that has the resource. The request may be one to a server that mounts it.
        uri: The URI.
    """
    context = get_context()
    above: Any = context.fastmcp
    request = context._call.request if context._call is not None else None  # noqa: SLF001 - a part of Context
    for server in (own,) if above is own else (own, above):
        with nullcontext() if request is None else server.active_context(request):
            if not await _passes(server, uri):
                return False
    return True


async def _passes(server: Any, uri: str) -> bool:
    """Return whether the middleware of a server lets the caller read a resource."""
    message = MiddlewareContext(
        message=model_of("ReadResourceRequestParams", {"uri": uri}),
        fastmcp_context=get_context(),
        method="resources/read",
    )
    try:
        for middleware in server.middleware:
            if isinstance(middleware, Middleware):
                await middleware.check_resource_access(message)
    except AuthorizationError:
        return False
    return True


def _has_resource(own: Any, uri: str) -> bool:
    """Return whether a server, or the one above that the request is for, has a resource of its own for a URI."""
    servers: list[Any] = [own, get_context().fastmcp]
    return any(server._server.catalog.resources.key_like(uri) is not None for server in servers)  # noqa: SLF001 - a part of it
