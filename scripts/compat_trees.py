"""Write the trees of modules `funcmcp.compat.fastmcp`, `funcmcp.compat.mcp` and `funcmcp.compat.mcp_types`.

    .venv/bin/python scripts/compat_trees.py

There is a module for each one of FastMCP and of the official SDK, with the names that `funcmcp.compat` has for it, so
that a server runs after a change of the top name of its imports. The modules of the originals are in
``src/funcmcp_cli/migrate/original_names.json``. `tests/compat/test_module_trees.py` compares the files with what this
writes.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import funcmcp.compat
import funcmcp.compat.mcp
from funcmcp._compat import sdk_types
from funcmcp_cli.migrate.compat_names import home_of, is_types, original_names
from funcmcp_cli.migrate.sentences import OTHER_MEANINGS

ROOT = "funcmcp.compat"
FOLDER = Path(__file__).parents[1] / "src" / "funcmcp" / "compat"
_TYPES = "funcmcp._compat.sdk_types"
BY_HAND = {"mcp"}
"""Modules of the trees that this script does not write."""

_MIXIN = {"funcmcp._compat.mixin": ["MCPMixin", "mcp_prompt", "mcp_resource", "mcp_tool"]}
_MANAGER = {"funcmcp._compat.component_routes": ["set_up_component_manager"]}
EXTRAS: dict[str, dict[str, list[str]]] = {
    "fastmcp.skills": {"funcmcp._compat.skills": ["SkillFile", "SkillManifest", "SkillResource"]},
    "fastmcp.skills.skill": {"funcmcp._compat.skills": ["SkillFile", "SkillManifest"]},
    "fastmcp.skills.models": {"funcmcp._compat.skills": ["SkillResource"]},
    "fastmcp.skills.provider": {"funcmcp._compat.agent_skills": ["SkillFileResource", "SkillsDirectoryProvider"]},
    "fastmcp.server.extensions": {
        "funcmcp._compat.extensions": ["read_client_extension_settings"],
        "funcmcp.compat.mcp": ["MethodBinding"],
    },
    "fastmcp": {
        "funcmcp._compat.global_settings": ["Settings", "settings"],
        "funcmcp.compat": ["FastMCPApp", "Skill"],
        "funcmcp.compat.fastmcp.client": ["Client"],
    },
    "fastmcp.decorators": {"funcmcp._compat.standalone": ["get_fastmcp_meta"]},
    "fastmcp.prompts.function_prompt": {"funcmcp._compat.standalone": ["PromptMeta"]},
    "fastmcp.resources.function_resource": {"funcmcp._compat.standalone": ["ResourceMeta"]},
    "fastmcp.tools.function_tool": {"funcmcp._compat.standalone": ["ToolMeta"]},
    "fastmcp.settings": {"funcmcp._compat.global_settings": ["Settings"]},
    "fastmcp.telemetry": {
        "funcmcp._compat.tracers": [
            "extract_trace_context",
            "get_tracer",
            "inject_trace_context",
            "native_spans_enabled",
            "suppress_fastmcp_telemetry",
            "telemetry_mode",
        ]
    },
    "fastmcp.utilities.auth": {"funcmcp._compat.scope_texts": ["parse_scopes"]},
    "fastmcp.server.providers.addressing": {
        "funcmcp._compat.app_addresses": [
            "HASH_LENGTH",
            "TOOL_HASH_META_KEY",
            "hash_tool",
            "hashed_backend_name",
            "hashed_resource_uri",
            "is_app_tool_with_identity",
            "parse_hashed_backend_name",
            "parse_hashed_resource_uri",
            "tool_identity",
        ],
    },
    "fastmcp.server.sessions": {
        "funcmcp._compat.sessions": [
            "CurrentSession",
            "InvalidSession",
            "OptionalCurrentSession",
            "SESSION_ID_DESCRIPTION",
            "SessionAuthError",
            "SessionId",
            "create_session",
            "current_principal",
            "end_session",
            "session_id_parameter_names",
            "session_storage_key",
        ],
    },
    "fastmcp.utilities.lifespan": {"funcmcp._compat.lifespans": ["combine_lifespans"]},
    "fastmcp.utilities.tests": {
        "funcmcp._compat.global_settings": ["temporary_settings"],
        "funcmcp._compat.original_clients": ["asgi_client", "asgi_server"],
        "funcmcp._compat.served_in_tests": ["run_server_async", "run_server_in_process"],
    },
    "fastmcp.contrib.mcp_mixin": _MIXIN,
    "fastmcp.contrib.mcp_mixin.mcp_mixin": _MIXIN,
    "fastmcp.contrib.bulk_tool_caller": {"funcmcp._compat.bulk_calls": ["BulkToolCaller"]},
    "fastmcp.contrib.bulk_tool_caller.bulk_tool_caller": {
        "funcmcp._compat.bulk_calls": ["BulkToolCaller", "CallToolRequest", "CallToolRequestResult"],
    },
    "fastmcp.contrib.component_manager": _MANAGER,
    "fastmcp.contrib.component_manager.component_manager": _MANAGER,
    "fastmcp.exceptions": {"funcmcp.compat": ["McpError"]},
    "fastmcp.prompts.prompt": {"funcmcp._compat.sdk_types": ["PromptMessage", "TextContent"]},
    "mcp.server": {
        "funcmcp._compat.middleware_adapters": ["ServerRequestContext"],
        "funcmcp._compat.sdk_settings": ["CacheHint"],
    },
    "mcp.server.auth.settings": {
        "funcmcp._compat.sdk_settings": ["AuthSettings", "ClientRegistrationOptions", "RevocationOptions"],
    },
    "mcp.server.caching": {"funcmcp._compat.sdk_settings": ["CacheHint"]},
    "mcp.server.context": {
        "funcmcp._compat.middleware_adapters": ["CallNext", "HandlerResult", "ServerRequestContext"],
    },
    "mcp.server.fastmcp.prompts.base": {"funcmcp._compat.sdk_types": ["PromptArgument"]},
    "mcp.server.mcpserver.prompts.base": {"funcmcp._compat.sdk_types": ["PromptArgument"]},
    "mcp.server.session": {"funcmcp._compat.context": ["ServerSession"]},
    "mcp.server.transport_security": {"funcmcp._compat.sdk_settings": ["TransportSecuritySettings"]},
    "mcp.shared.exceptions": {
        "funcmcp": ["MCPError"],
        "funcmcp._compat.sdk_errors": ["MCPDeprecationWarning", "UrlElicitationRequiredError"],
    },
    "mcp.shared.path_security": {
        "funcmcp._compat.security": ["PathEscapeError", "contains_path_traversal", "is_absolute_path", "safe_join"],
    },
    "mcp.shared.memory": {"funcmcp._compat.original_clients": ["create_connected_server_and_client_session"]},
}
"""Names that only a module of a tree has, by the module and by the module of funcmcp that defines them."""


CLIENTS = [
    "fastmcp.client",
    "fastmcp.client.auth",
    "fastmcp.client.auth.bearer",
    "fastmcp.client.auth.client_credentials",
    "fastmcp.client.auth.oauth",
    "fastmcp.client.caching",
    "fastmcp.client.client",
    "fastmcp.client.dependencies",
    "fastmcp.client.elicitation",
    "fastmcp.client.extension_hooks",
    "fastmcp.client.group",
    "fastmcp.client.logging",
    "fastmcp.client.messages",
    "fastmcp.client.mixins",
    "fastmcp.client.mixins.prompts",
    "fastmcp.client.mixins.resources",
    "fastmcp.client.mixins.tools",
    "fastmcp.client.oauth_callback",
    "fastmcp.client.progress",
    "fastmcp.client.roots",
    "fastmcp.client.sampling",
    "fastmcp.client.sampling.handlers",
    "fastmcp.client.sampling.handlers.anthropic",
    "fastmcp.client.sampling.handlers.google_genai",
    "fastmcp.client.sampling.handlers.openai",
    "fastmcp.client.tasks",
    "fastmcp.client.telemetry",
    "fastmcp.client.transports",
    "fastmcp.client.transports.base",
    "fastmcp.client.transports.config",
    "fastmcp.client.transports.http",
    "fastmcp.client.transports.inference",
    "fastmcp.client.transports.memory",
    "fastmcp.client.transports.sse",
    "fastmcp.client.transports.stdio",
    "fastmcp.utilities.asgi_transport",
    "mcp.client",
    "mcp.client.auth",
    "mcp.client.auth.exceptions",
    "mcp.client.auth.oauth2",
    "mcp.client.auth.utils",
    "mcp.client.auth.extensions",
    "mcp.client.auth.extensions.client_credentials",
    "mcp.client.auth.extensions.identity_assertion",
    "mcp.client.caching",
    "mcp.client.client",
    "mcp.client.context",
    "mcp.client.extension",
    "mcp.client.session",
    "mcp.client.session_group",
    "mcp.client.sse",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
    "mcp.client.subscriptions",
    "mcp.client.websocket",
    "mcp.shared.auth",
]
"""Modules of the originals' clients, and of the forms of OAuth messages, of all versions.

In the trees they are those of the package that is installed."""


def trees() -> dict[Path, str]:
    """Return the text of each module by its path below the folder of `funcmcp.compat`."""
    modules = _modules()
    packages = {module.rpartition(".")[0] for module in modules}
    return {
        _path(module, is_package=module in packages): _text(module, modules)
        for module in sorted(modules)
        if module not in BY_HAND
    }


def _modules() -> dict[str, dict[str, list[str]]]:
    """Return the modules of the originals with the packages above them: their names by the modules that have them."""
    modules: dict[str, dict[str, list[str]]] = {}
    for module in {*original_names()["modules"], *EXTRAS, *CLIENTS}:
        parts = module.split(".")
        for depth in range(1, len(parts) + 1):
            name = ".".join(parts[:depth])
            modules[name] = _homes(name)
    return modules


def _homes(module: str) -> dict[str, list[str]]:
    """Return the names that a module has in its tree, by the modules that have them."""
    homes: dict[str, list[str]] = defaultdict(list)
    for home, names in EXTRAS.get(module, {}).items():
        homes[home] += names
    others = {name for names in homes.values() for name in names}
    for name in filter(str.isidentifier, original_names()["modules"].get(module, {})):
        found = _home(module, name)
        if found and name not in others:
            homes[found].append(name)
    return {home: sorted(names) for home, names in sorted(homes.items())}


def _home(module: str, name: str) -> str | None:
    """Return the module of funcmcp that has a name of a module of the originals, None if there is none."""
    home = home_of(module, name)
    if is_types(home):
        return _TYPES if hasattr(sdk_types, name) and not name.startswith("_") else None
    if any(home == other or home.startswith(f"{other}.") for other in OTHER_MEANINGS):
        return None
    if home.startswith("mcp.server.") and name in funcmcp.compat.mcp.__all__:
        return "funcmcp.compat.mcp"
    return ROOT if name in funcmcp.compat.__all__ else None


def _path(module: str, *, is_package: bool) -> Path:
    path = Path(*module.split("."))
    return path / "__init__.py" if is_package else path.with_suffix(".py")


def _text(module: str, modules: dict[str, dict[str, list[str]]]) -> str:
    """Return the text of a module of a tree."""
    if module in CLIENTS:
        return _CLIENT.format(module=module)
    homes = modules[module]
    below = {name.rpartition(".")[2] for name in modules if name.rpartition(".")[0] == module}
    names = {name for listed in homes.values() for name in listed}
    imports = [f"    from {home} import {name} as {name}" for home, listed in homes.items() for name in listed]
    shadowing = below & {*names, *original_names()["modules"].get(module, {})}
    imports += [f"    from {ROOT}.{module} import {name} as {name}" for name in sorted(below - shadowing)]
    typed = ["if TYPE_CHECKING:", *imports, "else:"] if imports else ["if not TYPE_CHECKING:"]
    arguments = ", ".join(["__name__", _listed(homes), *([f"shadowing={sorted(shadowing)}"] if shadowing else [])])
    load = f"__getattr__, __dir__, __all__ = names_of({arguments})".replace("'", '"')
    lines = [
        f'"""Names of `{module}` that `{ROOT}` has. Written by scripts/compat_trees.py."""',
        "",
        "from typing import TYPE_CHECKING",
        "",
        "from funcmcp._compat.module_trees import names_of",
        "",
        *typed,
        f"    {load}",
    ]
    return "\n".join(lines) + "\n"


_CLIENT = """\
\"\"\"Names of `{module}`, for which its package has to be installed. Written by scripts/compat_trees.py.\"\"\"

from typing import TYPE_CHECKING, Any

from funcmcp._compat.original_clients import names_of_client

if TYPE_CHECKING:
    def __getattr__(name: str) -> Any: ...
else:
    __getattr__, __dir__ = names_of_client(__name__)
"""


def _listed(homes: dict[str, list[str]]) -> str:
    """Return a table of names by modules as an expression, a line for each module."""
    if not homes:
        return "{}"
    rows: list[str] = []
    for home, names in homes.items():
        rows += [f"        {home!r}: [", *(f"            {name!r}," for name in names), "        ],"]
    return "\n".join(["{", *rows, "    }"])


def main() -> None:
    """Write the modules, and delete those that are no longer in the trees."""
    texts = trees()
    for path, text in texts.items():
        file = FOLDER / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for file in FOLDER.rglob("*.py"):
        path = file.relative_to(FOLDER)
        if len(path.parts) > 1 and path not in texts and path != Path("mcp", "__init__.py"):
            file.unlink()


if __name__ == "__main__":
    main()
