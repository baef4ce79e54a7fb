"""The folders of the function apps in a repository: those that azure.yaml deploys, or those with a host.json.

Source: "azure.yaml schema" of the Azure Developer CLI (services.*.project).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from funcmcp._text.files import is_file, read_text
from funcmcp_host.folder import FolderError

_SERVICE = re.compile(r"""^[ \t]+project:[ \t]*["']?([^"'#\n]+)""", re.MULTILINE)
_MAX_DEPTH = 4
_MAX_FOLDERS = 2000
_OF_BUILDS = {"node_modules", "bin", "obj", "dist", "build", "out", "target", "venv", "env", "__pycache__"}


def deployed_apps(folder: Path) -> list[Path]:
    """Return the folders of the function apps that azure.yaml deploys; none if the folder itself has a host.json."""
    file = folder / "azure.yaml"
    if is_file(folder / "host.json") or not is_file(file):
        return []
    try:
        text = read_text(file)
    except (OSError, ValueError):
        return []
    # azd takes the path for one within the folder, also if it begins with a slash.
    projects = dict.fromkeys(folder / match.strip().lstrip("/\\") for match in _SERVICE.findall(text))
    return [project for project in projects if is_file(project / "host.json")]


def apps_below(folder: Path) -> list[Path]:
    """Return the folders below a folder that have a host.json, up to four levels below, by name."""
    apps: list[Path] = []
    for number, (path, names, files) in enumerate(os.walk(folder)):
        if number == _MAX_FOLDERS:
            break
        current = Path(path)
        if "host.json" in files and current != folder:
            apps.append(current)
        is_deep = len(current.relative_to(folder).parts) == _MAX_DEPTH or current in apps
        names[:] = [] if is_deep else sorted(name for name in names if name[0] != "." and name not in _OF_BUILDS)
    return apps


def app_in(folder: Path) -> Path:
    """Return the folder of the one app that a folder stands for: itself, or what azure.yaml in it deploys.

    Raises:
        FolderError: The folder has no host.json, and several apps or none are below it.
    """
    if is_file(folder / "host.json"):
        return folder
    deployed = deployed_apps(folder)
    if len(deployed) == 1:
        return deployed[0]
    text = choice_of(folder, deployed or apps_below(folder))
    if text:
        raise FolderError(f"{folder.resolve()} has no host.json. {text}")
    return folder


def choice_of(folder: Path, apps: list[Path]) -> str:
    """Return the sentences that name the apps below a folder; empty if there are none."""
    names = [app.relative_to(folder).as_posix() for app in apps]
    if not names:
        return ""
    verb = "Its function app is in" if len(names) == 1 else "Its function apps are in"
    return f"{verb} {', '.join(names)}. Name the folder of the app."
