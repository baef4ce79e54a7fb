"""What bundles and entries for registries are checked with: mcpb of npm, and the registry's schema in a package."""

from __future__ import annotations

import functools
import json
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema

from tests import nodejs
from tests.patience import PATIENCE
from tests.requirements import require


def mcpb(*arguments: str | Path) -> str:
    """Run the program of @anthropic-ai/mcpb, and return what it prints."""
    program = nodejs.package("@anthropic-ai/mcpb") / "dist" / "cli" / "cli.js"
    run = subprocess.run(
        [nodejs.node(), program, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@functools.cache
def _registry_schema() -> dict[str, Any]:
    spec = find_spec("skillsaw")
    origin = None if spec is None else spec.origin
    package = Path(require("The package skillsaw, which has the registry's schemas", origin)).parent
    file = package / "schemas" / "mcp_registry" / "v2025_12_11" / "server.schema.json"
    schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return schema


def check_registry_entry(entry: dict[str, Any]) -> None:
    """Check server.json against the schema that it names."""
    schema = _registry_schema()
    assert entry["$schema"] == schema["$id"]
    checker = jsonschema.Draft7Validator(schema, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)
    assert [error.message for error in checker.iter_errors(entry)] == []
