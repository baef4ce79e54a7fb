"""The client libraries, and how each is made to play plans.

A plan is what a client does with one server: it connects to `url`, declares all tools, makes `calls` (arguments by
tool), and uses a `resource` and a `prompt`. What it played has `declared` (by API and tool: a `declaration`, or a
`fault` with its `line`), `calls`, `resource` and `prompt` (each a `text`, or a `fault`), and `fault` if it could not go
on.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import nodejs
from tests.requirements import require

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
_SECONDS = 240
_SILENT = {
    "LANGSMITH_TRACING": "false",
    "MCP_USE_ANONYMIZED_TELEMETRY": "false",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "OTEL_SDK_DISABLED": "true",
    "PYTHONPATH": str(REPOSITORY),
}


@dataclass(frozen=True)
class Library:
    """A client library.

    Attributes:
        name: Its name and version.
        module: Its module or script in `clients`.
        environment: The virtual environment that has it, in .servers, or the folder of its node_modules, in tests.
        apis: The APIs that it declares tools for; "" if it declares none.
    """

    name: str
    module: str
    environment: str
    apis: tuple[str, ...]

    @property
    def command(self) -> list[str]:
        """What plays plans with it. Skips the test, or fails it in CI, where the library is not installed."""
        if self.environment.startswith("node"):
            folder = REPOSITORY / "tests" / self.environment
            require(f"{self.name} of setup-converters.sh", (folder / "node_modules" / ".ready").exists())
            return [str(nodejs.node()), str(HERE / "clients" / self.module), str(folder)]
        return [str(python(self.environment)), "-m", f"tests.converters.clients.{self.module}"]

    def play(self, plans: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Play plans in a process of its own."""
        done = subprocess.run(
            self.command,
            input=json.dumps(plans),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            cwd=REPOSITORY,
            env={**os.environ, **_SILENT},
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        played: list[dict[str, Any]] = json.loads(done.stdout)
        return played


def python(environment: str) -> Path:
    """Return the Python of a virtual environment in .servers; skip the test, or fail in CI, if it is missing."""
    folder = REPOSITORY / ".servers" / environment
    program = folder / "bin" / "python" if (folder / ".ready").exists() else None
    return require(f"The virtual environment {environment} of .servers", program)


LIBRARIES = (
    Library("google-genai 3.6.1", "google_genai", "converters/genai3", ("gemini",)),
    Library("google-adk 2.13.0", "google_adk", "converters/sdk2", ("gemini json",)),
    Library("langchain-mcp-adapters 0.3.2", "langchain", "converters/sdk1", ("openai", "gemini")),
    Library("openai-agents 0.24.0", "openai_agents", "converters/sdk1", ("openai", "openai strict")),
    Library("semantic-kernel 1.45.0", "semantic_kernel", "converters/sdk1", ("openai",)),
    Library("mcp-use 1.7.1", "mcp_use", "converters/sdk1", ("openai",)),
    Library("llama-index-tools-mcp 0.6.0", "llama_index", "converters/sdk2", ("openai",)),
    Library("pydantic-ai 2.68.0", "pydantic_ai", "converters/sdk2", ("openai", "gemini json")),
    Library("Python SDK 1.30.0", "python_sdk", "converters/sdk1", ("",)),
    Library("Python SDK 2.3.0", "python_sdk", "converters/sdk2", ("",)),
    Library("@langchain/mcp-adapters 1.1.4", "langchain_js.mjs", "node/converters", ("openai", "gemini")),
    Library("AI SDK 7.0.173", "ai_sdk.mjs", "node/converters", ("openai", "gemini json", "anthropic")),
    Library("TypeScript SDK 1.32.2", "typescript_v1.mjs", "node", ("",)),
    Library("TypeScript SDK 2.4.0", "typescript_v2.mjs", "node", ("",)),
)
