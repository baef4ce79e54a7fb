"""How modules of the trees `funcmcp.compat.fastmcp` and `funcmcp.compat.mcp` load names, and name what is missing.

Each module of a tree stands for the module of FastMCP or of the official SDK with the same path. It has the names that
`funcmcp.compat` has for it, and loads one when it is first used. ``scripts/compat_trees.py`` writes the modules.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ROOT = "funcmcp.compat."

INSTEAD_OF_NAMES = {
    "ClientSession": "use funcmcp.client.Client",
    "InitializationOptions": "leave it out: mcp.run() and the options of MCPServer describe the server",
    "InvalidRequestState": "leave it out: funcmcp seals and checks the state of requests itself",
    "NotificationOptions": "leave it out: the server notifies clients itself",
    "RequestStateCodec": "leave it out: funcmcp seals the state of requests with its own keys (FUNCMCP_KEYS)",
    "SseServerTransport": "use mcp.sse_app(), which is an ASGI application",
    "StreamableHTTPSessionManager": "use mcp.streamable_http_app(), which is an ASGI application",
    "stdio_server": "use mcp.run()",
    "__version__": 'use importlib.metadata.version("funcmcp")',
}
"""Names of FastMCP and of the official SDK that `funcmcp.compat` does not have, and what to use."""

INSTEAD_OF_MODULES = {
    "fastmcp.client": "use funcmcp.client.Client, or funcmcp.testing.Client in tests",
    "fastmcp.contrib": "copy what is used of it",
    "fastmcp.server.auth": "use OAuthProxy or an authenticator of funcmcp.auth; see docs/guides/sign-in.md",
    "fastmcp.server.transforms": "use funcmcp.transforms; see docs/guides/transforms.md",
    "fastmcp.server.providers": "use funcmcp.providers; see docs/guides/providers.md",
    "fastmcp.server.proxy": "use create_proxy of funcmcp.compat, or funcmcp.upstreams.Upstream",
    "fastmcp.server.sampling": "use await ctx.sample(...) without tools",
    "fastmcp.server.middleware": "see docs/guides/middleware.md for middleware of funcmcp",
    "mcp.client": "use funcmcp.client.Client",
    "mcp.server.auth": "use an authenticator of funcmcp.auth; see docs/guides/authentication.md",
    "mcp.server.lowlevel": "register each tool with @mcp.tool(input_schema=...); see docs/guides/from-the-sdk.md",
    "mcp.server.request_state": "leave it out: funcmcp seals the state of requests with its own keys (FUNCMCP_KEYS)",
    "mcp.server.streamable_http": "use mcp.streamable_http_app(), and sessions= with a store for events",
    "mcp.server.subscriptions": "leave it out: a server with a store in sessions= notifies clients of all instances",
    "mcp.server": "it is a part of the SDK's own server; see docs/guides/from-the-sdk.md for what replaces it",
    "mcp.shared": "it is a part of the SDK's own server; see docs/guides/from-the-sdk.md for what replaces it",
    "mcp.types": "keep the package mcp installed, and import the name from mcp.types",
    "mcp_types": "keep the package mcp installed, and import the name from mcp_types",
}
"""The same for all names of modules and of the modules below them. The longest name counts."""


def names_of(
    module: str, homes: Mapping[str, Sequence[str]], *, shadowing: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the ``__getattr__``, the ``__dir__`` and the ``__all__`` of a module of a tree.

    Args:
        module: The name of the module.
        homes: Its names by the modules that have them.
        shadowing: The names of the original module that are submodules as well. They are loaded at once, because an
            import of the submodule would put it in their place. One that is missing is not the submodule either.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name in home_of:
            value = getattr(import_module(home_of[name]), name)
        elif name not in shadowing and is_submodule(module, name):
            value = import_module(f"{module}.{name}")
        else:
            raise missing(module, name, is_submodule=name in shadowing)
        setattr(sys.modules[module], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *home_of})

    for name in home_of.keys() & set(shadowing):
        import_module(f"{module}.{name}")
        load(name)
    return load, names, sorted(home_of)


def is_submodule(module: str, name: str) -> bool:
    """Return whether a module of a tree has a submodule of a name."""
    is_package = "__path__" in vars(sys.modules[module])
    return is_package and not name.startswith("__") and find_spec(f"{module}.{name}") is not None


def missing(module: str, name: str, *, is_submodule: bool = False) -> Exception:
    """Return the error for a name that a module of a tree does not have.

    It is an ImportError if there is something to use for the name, because ``from module import name`` drops the text
    of an AttributeError.

    Args:
        module: The name of the module.
        name: The name that it does not have.
        is_submodule: Whether a submodule has the name, which an import would return in its place.
    """
    original = module.removeprefix(_ROOT)
    if name == "__version__":  # an AttributeError, so that getattr(fastmcp, "__version__", None) is None
        return AttributeError(f"funcmcp.compat has no __version__ of {original}. {advice_for(original, name)}")
    if not name.startswith("__"):
        advice = advice_for(original, name)
        if advice or is_submodule:
            return ImportError(f"funcmcp.compat has no {name} of {original}. {advice}".rstrip(), name=module)
    return AttributeError(f"module {module!r} has no attribute {name!r}")


def advice_for(module: str, name: str) -> str:
    """Return what to use for a name of FastMCP or of the official SDK, as a sentence; "" if nothing is known.

    Args:
        module: The module of the original.
        name: The name.
    """
    text: str = import_module("funcmcp.compat")._ELSEWHERE.get(name, "")  # noqa: SLF001 - both are funcmcp.compat
    if text:
        return text
    text = INSTEAD_OF_NAMES.get(name, "")
    while module and not text:
        text = INSTEAD_OF_MODULES.get(module, "")
        module = module.rpartition(".")[0]
    return f"{text[:1].upper()}{text[1:]}." if text else ""
