"""The home folder of the user. A container can run a process as a user that the system does not list."""

from __future__ import annotations

from pathlib import Path

from funcmcp_cli.failure import Failure


def home_folder() -> Path:
    """Return the home folder of the user; raise Failure if neither HOME nor the system names it."""
    try:
        return Path.home()
    except RuntimeError as error:
        raise Failure("The user of this process has no home folder. Set the environment variable HOME.") from error
