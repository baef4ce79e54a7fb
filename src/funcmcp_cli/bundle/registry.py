"""The entry of a server for a registry (server.json), and what the official registry refuses about it.

Sources, all of modelcontextprotocol/registry: server.schema.json of 2025-12-11, "Package Types" and "Versioning", and
internal/validators, which decides what the official registry accepts.
"""

from __future__ import annotations

import json
import re
import textwrap
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from funcmcp._client.public_addresses import is_public
from funcmcp_cli.bundle.documents import SOURCES, first_url, is_web_url, source_of
from funcmcp_cli.failure import Failure
from funcmcp_cli.json_values import as_list, as_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from funcmcp_cli.bundle.documents import Description
    from funcmcp_cli.bundle.project import Project, Setting

REGISTRY_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

_MAX_TEXT = 100
"""Characters of a title and of a description."""

_MAX_NAME, _MAX_VERSION = 200, 255
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9.-]*[a-zA-Z0-9]/[a-zA-Z0-9][a-zA-Z0-9._-]*[a-zA-Z0-9]")
_VERSION = re.compile(r"v?\d+(\.\d+){0,3}(-[0-9A-Za-z.-]+)?")
_WILDCARD = re.compile(r"(?=.*[xX*])(v?\d+|[xX*])(\.(\d+|[xX*])){1,2}(-[0-9A-Za-z.-]+)?")
_REPOSITORY_PART = re.compile(r"[A-Za-z0-9_.-]+")
_RELEASES = {
    "github.com": re.compile(r"/[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+/releases/download/[^/]+/[^/]+"),
    "gitlab.com": re.compile(r"/[A-Za-z0-9._/-]+/-/(releases/[^/]+/downloads/[^/]+|package_files/[0-9]+/download)"),
}
"""The paths of files of a release, by the hosts from which the official registry accepts bundles."""


def registry_entry(project: Project, description: Description) -> dict[str, Any] | None:
    """Return the entry for a registry (server.json). Return None if the server has no name there, or no place.

    The hash of the bundle, which set_digest() adds, is empty.

    Raises:
        Failure: The name, the version or a URL is not in the form of server.json.
    """
    options = project.options
    source = source_of(description.urls)
    name = _checked_name(options.registry_name) or _name_of_repository(source, description.name)
    identifier = _identifier_on_pypi(project, description)
    if not name or not (identifier or options.download_url or options.remote_url):
        return None
    _check_version(description.version)
    packages = _packages(project, description, identifier)
    website = first_url(description.urls, "homepage")
    entry: dict[str, Any] = {
        "$schema": REGISTRY_SCHEMA,
        "name": name,
        "title": _shortened(description.title),
        "description": _shortened(description.text),
        "version": description.version,
        "websiteUrl": website if (website or "").startswith("https:") else None,
        "repository": _repository(source),
        "packages": packages or None,
        "remotes": [_remote(options.remote_url)] if options.remote_url else None,
    }
    return {member: value for member, value in entry.items() if value is not None}


def set_digest(entry: Mapping[str, Any], sha256: str) -> None:
    """Write the hash of the bundle into an entry."""
    for package in entry.get("packages", []):
        if "fileSha256" in package:
            package["fileSha256"] = sha256


def _checked_name(name: str) -> str:
    if name and not (_NAME.fullmatch(name) and len(name) <= _MAX_NAME):
        raise Failure(f"{name!r} is not a valid registry name. Write registry-name = 'io.github.OWNER/NAME'.")
    return name


def _check_version(version: str) -> None:
    if version == "latest" or len(version) > _MAX_VERSION or _is_range(version.strip()):
        raise Failure(f"A registry does not accept the version {version!r}. Write one version, such as 1.2.0.")


def _is_range(version: str) -> bool:
    """Return whether the official registry takes a version for several: one with a comparison, an or, or a wildcard."""
    compared = version.lstrip("^~<>=").strip()
    if _WILDCARD.fullmatch(version) or (compared != version and _VERSION.fullmatch(compared)):
        return True
    lists = (version.split("||"), version.split(" - "))
    return any(len(parts) > 1 and all(_VERSION.fullmatch(part.strip()) for part in parts) for parts in lists)


def _identifier_on_pypi(project: Project, description: Description) -> str | None:
    """Return the name of the package, if it has a command of that name: the one that uvx starts."""
    scripts = as_object(project.metadata.get("scripts"))
    names = (str(project.metadata.get("name")), description.name)
    return next((name for name in names if name in scripts), None)


def _packages(project: Project, description: Description, identifier: str | None) -> list[dict[str, Any]]:
    """Return the package on PyPI, if it has an identifier there, and the bundle, if it has a URL."""
    variables = [_variable(setting) for setting in project.options.settings]
    packages = []
    if identifier is not None:
        packages.append({
            "registryType": "pypi",
            "identifier": identifier,
            "version": description.version,
            "runtimeHint": "uvx",
            "transport": {"type": "stdio"},
            "environmentVariables": variables,
        })  # fmt: skip
    if project.options.download_url:
        packages.append({
            "registryType": "mcpb",
            "identifier": _download_url(project.options.download_url, description.version),
            "version": description.version,
            "fileSha256": "",
            "transport": {"type": "stdio"},
            "environmentVariables": variables,
        })  # fmt: skip
    return packages


def _download_url(template: str, version: str) -> str:
    url = template.replace("{version}", version)
    if not is_web_url(url) or "{" in url:
        raise Failure(f"download-url {template!r} is not a URL. Write https://...; {{version}} in it is the version.")
    return url


def _remote(url: str) -> dict[str, Any]:
    if not is_web_url(url) or "{" in url:
        raise Failure(
            f"remote-url {url!r} is not a URL. Write the URL of one endpoint, such as https://example.com/mcp."
        )
    return {"type": "streamable-http", "url": url}


def _shortened(text: str) -> str:
    """Return a text in one line that is not longer than a registry allows, if possible with whole words."""
    line = " ".join(text.split())
    if len(line) <= _MAX_TEXT:
        return line
    shortened = textwrap.shorten(line, _MAX_TEXT, placeholder="...")
    return shortened if len(shortened) > _MAX_TEXT // 2 else f"{line[: _MAX_TEXT - 3]}..."


def _variable(setting: Setting) -> dict[str, Any]:
    kind = "filepath" if setting.type in {"file", "directory"} else setting.type
    value: dict[str, Any] = {
        "name": setting.variable,
        "description": setting.description or setting.title or f"The environment variable {setting.variable}.",
        "format": kind,
        "isRequired": setting.required,
        "isSecret": setting.secret,
    }
    default = setting.default
    if default is not None and "${" not in str(default):  # clients replace ${HOME} in the manifest of a bundle only
        value["default"] = default if isinstance(default, str) else json.dumps(default)
    if setting.choices:
        value["choices"] = list(setting.choices)
    return value


def _repository(source: str | None) -> dict[str, Any] | None:
    """Return the repository with the URL of its page, without a branch or a folder of it."""
    parts = urlsplit(source or "")
    host = (parts.hostname or "").removeprefix("www.")
    kind = SOURCES.get(host)
    names = parts.path.partition("/-/")[0].strip("/").removesuffix(".git").split("/")
    if kind == "github":
        names = names[:2]
    if kind is None or len(names) == 1 or not all(map(_REPOSITORY_PART.fullmatch, names)):
        return None
    return {"url": f"https://{host}/{'/'.join(names)}", "source": kind}


def _name_of_repository(source: str | None, name: str) -> str:
    """Return the name that the official registry gives to servers of a repository on GitHub, or ""."""
    parts = urlsplit(source or "")
    owner = parts.path.strip("/").partition("/")[0]
    registry_name = f"io.github.{owner}/{name}"
    is_valid = _NAME.fullmatch(registry_name) is not None and len(registry_name) <= _MAX_NAME
    return registry_name if parts.hostname in {"github.com", "www.github.com"} and owner and is_valid else ""


def official_problems(entry: Mapping[str, Any], project: Project) -> list[str]:
    """Return why the official registry refuses an entry, and what to do. Other registries have other rules."""
    problems = []
    for package in entry.get("packages", []):
        if package["registryType"] == "pypi":
            problems += _problems_on_pypi(project, str(entry["name"]), str(entry["version"]))
        elif not _is_release(package["identifier"]):
            problems.append(
                f"{package['identifier']} is not a bundle in a release on GitHub or GitLab. Set download-url to one."
            )
    problems += [
        f"{remote['url']} is not a public URL with https. Correct remote-url."
        for remote in entry.get("remotes", [])
        if not _is_public(remote["url"])
    ]
    return problems


def _problems_on_pypi(project: Project, name: str, version: str) -> list[str]:
    """Return what the registry will miss on PyPI: the name of the server in the README, and perhaps the version."""
    dynamic = as_list(project.metadata.get("dynamic"))
    problems = []
    if "version" in dynamic and not project.options.version:
        problems.append(
            f"PyPI must have version {version} of the package, which is that of the server, because the version in "
            "[project] is dynamic. Set version in [tool.funcmcp.bundle] if it is another one."
        )
    readme = project.metadata.get("readme")
    line = f"<!-- mcp-name: {name} -->"
    if readme is None and "readme" not in dynamic:
        problems.append(
            f'The package has no README on PyPI. Write readme = "README.md" into [project], and {line} there.'
        )
    elif not _has_marker(_readme_text(project, readme), name):
        problems.append(f"The README of the package lacks this line: {line}")
    return problems


def _readme_text(project: Project, readme: Any) -> str:
    table = as_object(readme)
    if "text" in table:
        return str(table["text"])
    file = project.folder / str(table.get("file") or readme or "README.md")
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""


def _has_marker(text: str, name: str) -> bool:
    """Return whether a README names a server, and not only another one whose name is longer."""
    for following in text.split(f"mcp-name: {name}")[1:]:
        if following.startswith(("-->", "--!>")) or not re.match(r"[a-zA-Z0-9._/-]", following):
            return True
    return False


def _is_release(url: str) -> bool:
    parts = urlsplit(url)
    path = _RELEASES.get((parts.hostname or "").removeprefix("www."))
    is_file = path is not None and path.fullmatch(parts.path) is not None
    return is_file and parts.scheme == "https" and "mcp" in url.lower()


def _is_public(url: str) -> bool:
    """Return whether a URL has https and a host that is not that of a machine or a network of its own."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    if parts.scheme != "https" or host == "localhost" or host.endswith(".localhost"):
        return False
    try:
        return is_public(host)
    except ValueError:  # a name
        return True
