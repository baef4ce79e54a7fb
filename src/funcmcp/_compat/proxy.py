"""FastMCP's proxies: servers and providers that pass everything on to another server, or to those of a configuration.

FastMCP's proxy sends the headers of its client on, the credentials among them. These do not: a token is for one server.
"""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._app.mcp_server import MCPServer
from funcmcp._client.targets import HTTPEndpoint, StdioCommand
from funcmcp._compat.annotations import plain
from funcmcp._compat.extensions import ReadableSkills
from funcmcp._compat.provider import Provider, decided, feature_transforms
from funcmcp._compat.server import FastMCP
from funcmcp._compat.visibility import component_rule
from funcmcp._objects.mappings import without
from funcmcp._objects.public_names import public
from funcmcp._protocol.skills import SCHEME
from funcmcp._upstreams.bridged import upstreams_of
from funcmcp._upstreams.servers_file import read_servers
from funcmcp._upstreams.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from funcmcp._server.catalog.transformed import AnyFeature

_logger = logging.getLogger("funcmcp.compat")

_ERAS = {"legacy": "handshake", "auto": "newest"}
"""Eras of an upstream, by the ``mode`` of FastMCP's clients."""

_PROGRAMS = {".py": sys.executable, ".js": "node"}
"""What runs a script, by the end of its name."""

_CHANGES: dict[str, Any] = {"tools": dict, "include_tags": (list, tuple, set), "exclude_tags": (list, tuple, set)}
"""Members of an entry that change or hide the features of its server, and their types in FastMCP's configurations.

Those of other types are of another client, such as a list of `tools`. FastMCP ignores them."""


@public("funcmcp.compat")
class ProxyClient:
    """The target of a proxy, for `ProxyProvider` and `FastMCPProxy`.

    It forwards the backend's questions (sampling, elicitation, roots), its log messages and its progress to the client
    of the proxy. No header of that client is passed on, with either value of *forward_incoming_headers*.

    Args:
        transport: The target, as for `create_proxy`.
        forward_incoming_headers: Is ignored.
        mode: ``"legacy"`` sends all requests in sessions, ``"auto"`` all in the newest revision of the backend. By
            default a client of an older revision has a session.
        client_info: How the proxy introduces itself to the backend: an ``Implementation`` of ``mcp.types``.
        options: Other options of FastMCP's client, which are ignored.
    """

    sessions: str = "call"
    """Which requests share a session of the backend, as `funcmcp.upstreams.Upstream` has it."""

    def __init__(
        self,
        transport: Any,
        *,
        forward_incoming_headers: bool = True,
        mode: str | None = None,
        client_info: Any = None,
        **options: Any,
    ) -> None:
        del forward_incoming_headers
        self.transport = transport
        self.mode = mode
        self.client_info = client_info
        self.options = options

    if not TYPE_CHECKING:

        def __class_getitem__(cls, _: Any) -> Any:
            """Return the class itself: ``ProxyClient[Transport]`` means the same."""
            return cls

    def new(self) -> ProxyClient:
        """Return a client of the same target."""
        return type(self)(self.transport, mode=self.mode, client_info=self.client_info, **self.options)


@public("funcmcp.compat")
class StatefulProxyClient(ProxyClient):
    """A `ProxyClient` that has one session of the backend for each session of a client of the proxy."""

    sessions = "client"

    def new_stateful(self) -> StatefulProxyClient:
        """Return this client."""
        return self


@public("funcmcp.compat")
class ProxyProvider(Provider):
    """The features of another server.

    Args:
        client_factory: A function without arguments that returns a `ProxyClient`, a client of FastMCP or a target of
            `create_proxy`. It is called once, when the provider is added.
        cache_ttl: Is ignored: lists are read again when the other server says that they have changed.
        skills: Whether the skills of the other server are skills of this one, too.
        options: Other options of FastMCP, which are ignored.

    Raises:
        TypeError: *client_factory* is not a function, or is async.
    """

    def __init__(
        self, client_factory: Callable[[], Any], cache_ttl: float | None = None, *, skills: bool = False, **options: Any
    ) -> None:
        super().__init__()
        self.skills: bool = skills
        self.passes_instructions: bool = False
        del cache_ttl, options
        if not callable(client_factory):
            raise TypeError("ProxyProvider takes a function that returns a client. Write lambda: ProxyClient(target).")
        self.client_factory = client_factory

    def add_to(self, server: Any, namespace: str | None, transforms: Sequence[Any]) -> None:
        """Add the other server, with the transforms of this provider."""
        changes = [*feature_transforms(self), *transforms]
        target = self.client_factory()
        add_upstreams(
            server, target, namespace, changes, skills=self.skills, passes_instructions=self.passes_instructions
        )

    def _owns_skill_resource(self, uri: str) -> bool:
        """Return whether a cache must not serve a resource, because its contents have to fit the entry of a skill."""
        return self.skills and uri.startswith(SCHEME)


@public("funcmcp.compat")
class FastMCPProxy(FastMCP):
    """A server that passes everything on to another one. `create_proxy` makes one of a target.

    Without instructions of its own, it has those of the other server.

    Args:
        client_factory: As for `ProxyProvider`.
        provider_error_strategy: Is ignored: requests for features of a server that has never answered are errors.
        identity: Is ignored: clients see the identity of this server.
        skills: Whether the skills of the other server are skills of this one, too.
        settings: The options of the server, such as its name.
    """

    def __init__(
        self,
        *,
        client_factory: Callable[[], Any],
        provider_error_strategy: str = "warn",
        identity: str = "proxy",
        skills: bool = False,
        **settings: Any,
    ) -> None:
        del provider_error_strategy, identity
        super().__init__(settings.pop("name", None) or "FastMCPProxy", **settings)
        self.client_factory = client_factory
        provider = ProxyProvider(client_factory, skills=skills)
        provider.passes_instructions = self.instructions is None
        self.add_provider(provider)


def add_upstreams(
    server: Any,
    target: Any,
    namespace: str | None = None,
    transforms: Sequence[Any] = (),
    *,
    skills: bool = False,
    passes_instructions: bool = False,
) -> None:
    """Mount the server that a target of FastMCP's proxies names, or each of a configuration.

    Args:
        server: Serves the features.
        target: The target.
        namespace: The prefix of names and URIs.
        transforms: Transforms for the features of the target.
        skills: Whether its skills are served, too.
        passes_instructions: Whether its instructions are those of this server. Several servers have none together.

    Raises:
        TypeError: The target is of another type.
        ValueError: The configuration has no server that can be used.
    """
    options: dict[str, Any] = {"client_info": _client_info_of(target), "skills": skills}
    if isinstance(target, ProxyClient):
        options |= {"sessions": target.sessions, "era": _ERAS.get(target.mode or "")}
    elif getattr(target, "mode", None) == "legacy":  # FastMCP's client
        options["era"] = "handshake"
    resolved = _target_of(target)
    if isinstance(resolved, dict):
        _add_configured(server, resolved, namespace, transforms, passes_instructions=passes_instructions)
    else:
        changes = [with_own_tags, *transforms]
        if skills:
            changes.append(ReadableSkills(server))
        upstream = Upstream(resolved, instructions=passes_instructions, **options)
        upstream.names_instructions = False
        server.mount(upstream, namespace, transforms=changes)


def _client_info_of(target: Any) -> dict[str, Any] | None:
    """Return how a client introduces itself to its server; None if the author has not chosen that."""
    info = target.client_info if isinstance(target, ProxyClient) else None
    if info is None:
        info = getattr(target, "_session_kwargs", {}).get("client_info")  # of FastMCP's client
    described = plain(info)
    return described if isinstance(described, dict) and described.get("version") else None


def with_own_tags(feature: AnyFeature) -> AnyFeature:
    """Return a feature of another server with the tags that its ``_meta`` names, so that rules for tags find it."""
    meta = feature.describe().get("_meta") or {}
    for member in ("fastmcp", "_fastmcp"):
        tags = meta[member].get("tags") if isinstance(meta.get(member), dict) else None
        if isinstance(tags, list):
            return replace(feature, tags=feature.tags.union(tag for tag in tags if isinstance(tag, str)))
    return feature


def _add_configured(
    server: Any, configuration: dict[str, Any], namespace: str | None, transforms: Any, *, passes_instructions: bool
) -> None:
    plain_configuration, changes = _without_changes(configuration)
    servers = read_servers(plain_configuration, os.environ)
    if not servers.entries:
        raise ValueError(" ".join(["No server of the configuration can be used.", *servers.problems, *servers.notes]))
    for problem in servers.problems:
        _logger.warning("%s", problem)
    for prefix, upstream in upstreams_of(servers).items():
        prefixes = [namespace, prefix if servers.has_prefixes else None]
        upstream.adds_instructions = passes_instructions and not servers.has_prefixes
        upstream.names_instructions = False
        own = _transforms_of(changes.get(upstream.name, {}))
        server.mount(upstream, "_".join(filter(None, prefixes)) or None, transforms=[with_own_tags, *own, *transforms])


def _without_changes(configuration: dict[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return a configuration without the members of entries that change features, and these by the names of entries."""
    entries = configuration.get("mcpServers", configuration)
    if not isinstance(entries, dict):
        return configuration, {}
    plain_entries, changes = dict(entries), {}
    for name, entry in entries.items():
        if isinstance(entry, dict):
            plain_entries[name] = without(entry, *_CHANGES)
            changes[name] = {
                member: entry[member] for member, kind in _CHANGES.items() if isinstance(entry.get(member), kind)
            }
    if entries is configuration:
        return plain_entries, changes
    return {**configuration, "mcpServers": plain_entries}, changes


def _transforms_of(changes: dict[str, Any]) -> list[Any]:
    """Return the transforms for what an entry says of tools and tags: first tools, which may get tags."""
    transforms: list[Any] = []
    if changes.get("tools"):
        from funcmcp._compat.transforms import ToolTransform, ToolTransformConfig  # noqa: PLC0415 - few entries have it

        configs = {
            name: change if isinstance(change, ToolTransformConfig) else ToolTransformConfig(**change)
            for name, change in changes["tools"].items()
        }
        transforms.append(ToolTransform(configs))
    if "include_tags" in changes:
        rule = component_rule({"tags": set(changes["include_tags"])}, shows=True, only=True)
        transforms.append(partial(decided, rule))
    if changes.get("exclude_tags"):
        rule = component_rule({"tags": set(changes["exclude_tags"])}, shows=False)
        transforms.append(partial(decided, rule))
    return transforms


def _target_of(target: Any) -> Any:
    """Return a target of FastMCP as one of funcmcp, or as a configuration; raise TypeError if it is not possible."""
    if isinstance(target, str) and Path(target).suffix in _PROGRAMS and Path(target).is_file():
        target = Path(target)
    if isinstance(target, Path):
        program = _PROGRAMS.get(target.suffix)
        if program is None:
            raise TypeError(f"{target} is not a script of Python or Node.")
        return StdioCommand(program, str(target))
    if type(target).__name__ == "AnyUrl":
        return str(target)
    if isinstance(target, str | dict | MCPServer | HTTPEndpoint | StdioCommand):
        return target
    if isinstance(getattr(target, "mcpServers", None), dict):
        return target.model_dump(exclude_none=True)
    return _target_of_transport(target)


def _target_of_transport(target: Any) -> Any:
    """Return what a client or a transport of FastMCP connects to; the value itself if it is neither."""
    inner = getattr(target, "transport", None)
    if inner is not None and inner is not target:
        return _target_of(inner)
    if isinstance(getattr(target, "server", None), MCPServer):
        return target.server
    url = getattr(target, "url", None)
    if url is not None:
        return HTTPEndpoint(str(url), headers=_headers_of(target))
    command = getattr(target, "command", None)
    if isinstance(command, str):
        env, folder = getattr(target, "env", None) or {}, getattr(target, "cwd", None)
        return StdioCommand(command, *getattr(target, "args", ()), env=env, cwd=folder)
    return target


def _headers_of(transport: Any) -> dict[str, str]:
    """Return the headers of a transport of FastMCP, with its token; raise TypeError for another kind of sign-in."""
    headers = dict(getattr(transport, "headers", None) or {})
    auth = getattr(transport, "auth", None)
    if auth is None:
        return headers
    secret = getattr(getattr(auth, "token", None), "get_secret_value", None)
    if secret is None:
        raise TypeError(
            f"The client has auth={type(auth).__name__}, which a proxy of funcmcp does not use. Write "
            "mcp.mount(Upstream(url, auth=...)) with funcmcp.upstreams."
        )
    return {**headers, "authorization": f"Bearer {secret()}"}
