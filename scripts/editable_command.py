"""Adds the command ``funcmcp`` to editable installations of this project.

The distribution funcmcp-slim has no command: that of the distribution funcmcp would be a second file of the same name.
In an editable installation, which is for development, there is no other one.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMMAND = """#!python
from funcmcp._cli.main import main

if __name__ == "__main__":  # worker processes of `funcmcp run` import this file
    main()
"""


class EditableCommand(BuildHookInterface[Any]):
    """Adds the command to an editable wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the script, and add it to the wheel."""
        if version == "editable":
            script = Path(self.directory) / "funcmcp"
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(COMMAND, encoding="utf-8")
            build_data["shared_scripts"][str(script)] = "funcmcp"
