"""What describes a server in its bundle: the manifest, and what starts the server.

Sources: modelcontextprotocol/mcpb, MANIFEST.md, mcpb-manifest-v0.4.schema.json and src/node/validate.ts.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from funcmcp_cli.failure import Failure
from funcmcp_cli.json_values import as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from funcmcp import MCPServer, ServerInfo
    from funcmcp.client import Tool
    from funcmcp_cli.bundle.project import Project, Setting
    from funcmcp_cli.targets import Target

START = "start_server.py"
"""The file in a bundle that starts the server. Clients that do not use the manifest's command run it with uv."""

SOURCES = {"github.com": "github", "gitlab.com": "gitlab"}
"""Hosts of repositories, and their names in a registry."""

_NOT_IN_NAMES = re.compile(r"[^a-z0-9._]+")
_EMAIL = re.compile(r"(?!.*\.\.)[A-Za-z0-9_'+-][A-Za-z0-9_'+.-]*(?<!\.)@[A-Za-z0-9][A-Za-z0-9.-]*\.[A-Za-z]{2,}")
"""Addresses that the validator of @anthropic-ai/mcpb takes."""

_PLATFORMS = ["darwin", "linux", "win32"]
_SOURCE_LABELS = ("source", "source code", "repository", "github")


class Description(NamedTuple):
    """A server in words.

    Attributes:
        name: The name in file names.
        title: A name for people.
        version: The version.
        text: What the server is for.
        author: Members of the author: name, and perhaps email.
        urls: URLs of web pages by their labels in lower case, such as "source".
    """

    name: str
    title: str
    version: str
    text: str
    author: Mapping[str, str]
    urls: Mapping[str, str]


def describe(project: Project, server: MCPServer, info: ServerInfo, version: str) -> Description:
    """Return a server in words: those of its project, and else its own.

    Raises:
        Failure: The project does not say who made it, which a manifest must.
    """
    table, chosen = project.metadata, project.options
    title = _first_of(chosen.title, info.title, server.name)
    name = _NOT_IN_NAMES.sub("-", _first_of(table.get("name"), chosen.name, server.name).lower()).strip("-.")
    return Description(
        name or "server",
        title,
        _first_of(table.get("version"), chosen.version, version),
        _first_of(table.get("description"), chosen.description, info.description, title),
        _author(project),
        {str(label).lower(): str(url) for label, url in as_object(table.get("urls")).items() if is_web_url(str(url))},
    )


def _first_of(*texts: Any) -> str:
    """Return the first text that is not empty."""
    return next((text for text in (str(text or "").strip() for text in texts) if text), "")


def is_web_url(text: str) -> bool:
    """Return whether a text is the URL of a page: with http or https, a host, and without spaces."""
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and not re.search(r"\s", text)
    except ValueError:
        return False


def _author(project: Project) -> dict[str, str]:
    """Return the author's name, perhaps with an email address."""
    for person in map(as_object, as_list(project.metadata.get("authors"))):
        if person.get("name"):
            email = str(person.get("email", ""))
            return {"name": str(person["name"])} | ({"email": email} if _EMAIL.fullmatch(email) else {})
    if project.options.author:
        return {"name": project.options.author}
    raise Failure(
        "The author of the bundle is missing. Write authors = [{ name = '...' }] into [project] of pyproject.toml, or "
        "author = '...' into [tool.funcmcp.bundle]."
    )


def manifest_for(
    project: Project, description: Description, tools: Sequence[Tool] | None, *, has_prompts: bool
) -> dict[str, Any]:
    """Return the manifest of a bundle.

    Args:
        project: The project.
        description: The server in words.
        tools: The definitions of its tools. None if they are not known before it runs.
        has_prompts: Whether it has prompts. Their texts are not known before it runs.
    """
    settings = project.options.settings
    env = {setting.variable: f"${{user_config.{setting.key}}}" for setting in settings}
    python = project.metadata.get("requires-python")
    manifest: dict[str, Any] = {
        "manifest_version": "0.4",
        "name": description.name,
        "display_name": description.title,
        "version": description.version,
        "description": description.text,
        "author": dict(description.author),
        **_pages(description.urls),
        "icon": project.options.icon or None,
        "server": {
            "type": "uv",
            "entry_point": START,
            # The specification makes the command optional for uv. The validator of @anthropic-ai/mcpb 2.1 requires it.
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--no-dev", "--directory", "${__dirname}", START],
                "env": env,
            },
        },
        "tools": None if tools is None else [_tool(tool) for tool in tools],
        "tools_generated": True if tools is None else None,
        "prompts_generated": has_prompts or None,
        "keywords": [str(word) for word in as_list(project.metadata.get("keywords"))] or None,
        "license": _license(project.metadata),
        "compatibility": {"platforms": _PLATFORMS, "runtimes": {"python": str(python)} if python else {}},
        "user_config": {setting.key: _user_config(setting) for setting in settings} or None,
    }
    return {name: value for name, value in manifest.items() if value is not None}


def _pages(urls: Mapping[str, str]) -> dict[str, Any]:
    source = source_of(urls)
    privacy = first_url(urls, "privacy", "privacy policy")
    return {
        "repository": {"type": "git", "url": source} if source else None,
        "homepage": first_url(urls, "homepage"),
        "documentation": first_url(urls, "documentation", "docs"),
        "support": first_url(urls, "issues", "support", "bug tracker"),
        "privacy_policies": [privacy] if privacy else None,
    }


def _tool(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, **({"description": tool.description} if tool.description else {})}


def _user_config(setting: Setting) -> dict[str, Any]:
    value: dict[str, Any] = {
        "type": setting.type,
        "title": setting.title or setting.variable,
        "description": setting.description or f"The environment variable {setting.variable}.",
        "required": setting.required,
    }
    if setting.secret:
        value["sensitive"] = True
    if setting.default is not None:
        value["default"] = setting.default
    return value


def source_of(urls: Mapping[str, str]) -> str | None:
    """Return the URL of the repository: also the home page, if it is on a host of repositories."""
    labels: tuple[str, ...] = _SOURCE_LABELS
    if urlsplit(urls.get("homepage", "")).hostname in SOURCES:
        labels = (*labels, "homepage")
    return first_url(urls, *labels)


def first_url(urls: Mapping[str, str], *labels: str) -> str | None:
    """Return the first of the URLs with these labels."""
    return next((urls[label] for label in labels if label in urls), None)


def _license(metadata: Mapping[str, Any]) -> str | None:
    value = metadata.get("license")
    if isinstance(value, dict):
        value = value.get("text")
    return value if isinstance(value, str) else None


def start_file(place: Target, project: Project, server: MCPServer) -> str:
    """Return the program that starts the server of a bundle over stdio."""
    module = sys.modules[place.module]
    folder = place.root.relative_to(project.folder).as_posix()
    variables = [setting.variable for setting in project.options.settings]
    lines = [
        '"""Starts the server of this bundle over stdio. `funcmcp bundle` wrote this file."""',
        "",
        "import importlib",
        "import os",
        "import sys",
        *([] if folder == "." else ["from pathlib import Path"]),
        "",
        "# Clients pass a setting without a value as an empty text or as the reference itself.",
        f"for name in {variables!r}:",
        '    value = os.environ.get(name, "")',
        '    if not value or value.startswith("${user_config."):',
        "        os.environ.pop(name, None)",
        *([] if folder == "." else [f"sys.path.insert(0, str(Path(__file__).resolve().parent / {folder!r}))"]),
        f'importlib.import_module("{place.module}").{_attribute(module, server, place)}.run("stdio")',
        "",
    ]
    return "\n".join(lines)


def _attribute(module: ModuleType, server: MCPServer, place: Target) -> str:
    if place.attribute is not None:
        return place.attribute
    return next(name for name, value in vars(module).items() if value is server)


def pyproject_for(project: Project, description: Description) -> str:
    """Return the pyproject.toml of a bundle whose project has none: what uv needs to install the dependencies."""
    lines = [
        "[project]",
        f"name = {json.dumps(description.name)}",
        f"version = {json.dumps(description.version)}",
        f"requires-python = {json.dumps(str(project.metadata.get('requires-python') or '>=3.11'))}",
        f"dependencies = {json.dumps([str(text) for text in as_list(project.metadata.get('dependencies'))], indent=4)}",
        "",
    ]
    return "\n".join(lines)
