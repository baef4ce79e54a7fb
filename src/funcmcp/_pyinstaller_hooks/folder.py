"""Hooks of PyInstaller, which finds them by the entry point ``pyinstaller40`` of the package."""

from __future__ import annotations

from pathlib import Path


def hook_dirs() -> list[str]:
    """Return the folders of the hooks."""
    return [str(Path(__file__).parent)]
