"""The programs of docs/guides/agents.md answer a question with a tool of the server, by the frameworks themselves.

The model is tests/docs/openai_api.py: it calls the tool and repeats its result.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.processes import PYTHON
from tests.docs.pages import ROOT, block_of, run_python
from tests.requirements import require
from tests.serving import serve

pytestmark = pytest.mark.slow("The client libraries of other makers are large.")

PAGE = "guides/agents.md"
FRAMEWORKS = {
    "OpenAI Agents SDK": "sdk1",
    "LangChain and LangGraph": "sdk1",
    "Semantic Kernel": "sdk1",
    "Pydantic AI": "sdk2",
}


def python_with(environment: str) -> str:
    """Return the Python of an environment with client libraries, or skip the test (fail in CI)."""
    python = ROOT / ".servers" / "converters" / environment / "bin" / "python"
    return str(require("Agent frameworks (scripts/setup-converters.sh)", python if python.exists() else None))


@pytest.mark.parametrize("heading", FRAMEWORKS)
def test_an_agent_calls_the_tool(heading: str, tmp_path: Path) -> None:
    python = python_with(FRAMEWORKS[heading])
    (tmp_path / "server.py").write_text(block_of(PAGE, "Use from agents"))
    with (
        serve(tmp_path / "server.py") as server,
        serve(Path(__file__).with_name("openai_api.py"), attribute="app") as model,
    ):
        (tmp_path / "agent.py").write_text(block_of(PAGE, heading).replace("http://127.0.0.1:8000", server.origin))
        variables = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": model.origin, "OPENAI_AGENTS_DISABLE_TRACING": "1"}
        run = run_python("agent.py", folder=tmp_path, variables=variables, python=python)
    assert run.returncode == 0, run.stderr
    assert "The tool says" in run.stdout
    assert "3 EUR" in run.stdout


def test_a_loop_of_ones_own_calls_the_tool(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(block_of(PAGE, "Use from agents"))
    with serve(tmp_path / "server.py") as server:
        (tmp_path / "agent.py").write_text(
            block_of(PAGE, "Your own loop").replace("http://127.0.0.1:8000", server.origin)
        )
        run = run_python("agent.py", folder=tmp_path, python=PYTHON)
    assert run.stdout.endswith("3 EUR\n"), run.stderr
