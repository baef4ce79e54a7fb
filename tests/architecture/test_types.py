"""The public interface has complete types, as pyright sees it in a program that uses funcmcp."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import nodejs
from tests.patience import PATIENCE

SOURCE = Path(__file__).parents[2] / "src"


def pyright(*arguments: str, folder: Path) -> dict[str, Any]:
    """Return what pyright reports, with this Python's packages and the sources of funcmcp."""
    program = nodejs.package("pyright") / "index.js"
    command = [str(nodejs.node()), str(program), "--outputjson", "--pythonpath", sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=folder, env=environment
    )
    report: dict[str, Any] = json.loads(run.stdout)
    return report


def test_each_public_name_has_a_complete_type(tmp_path: Path) -> None:
    """Types that other packages leave incomplete (azure-functions, redis) do not count."""
    completeness = pyright("--verifytypes", "funcmcp", "--ignoreexternal", folder=tmp_path)["typeCompleteness"]
    unclear = [symbol["name"] for symbol in completeness["symbols"] if not symbol["isTypeKnown"]]
    assert unclear == []
    assert completeness["exportedSymbolCounts"]["withKnownType"] > 200
    assert completeness["completenessScore"] == 1


@pytest.mark.parametrize("module", ["funcmcp", "funcmcp.auth", "funcmcp.client", "funcmcp.compat", "funcmcp.content"])
def test_a_name_that_a_public_module_does_not_have_is_an_error(tmp_path: Path, module: str) -> None:
    file = tmp_path / "program.py"
    file.write_text(f"from {module} import no_such_name\n")
    report = pyright(str(file), folder=tmp_path)
    assert [diagnostic["rule"] for diagnostic in report["generalDiagnostics"]] == ["reportAttributeAccessIssue"]


FORMS = """
from dataclasses import dataclass
from typing import Literal

from funcmcp import Context, Elicit


@dataclass
class Order:
    dish: str


async def ask(context: Context) -> None:
    order = await context.elicit("?", Order)
    reveal_type(order.content)
    if order.action == "accept":
        reveal_type(order.content)
    number = await context.elicit("?", int)
    choice = await context.elicit("?", ["soup", "tart"])
    choices = await context.elicit("?", [["soup", "tart"]])
    literal = await context.elicit("?", Literal["soup"])
    form = await context.elicit("?", {"type": "object", "properties": {}})
    print(literal.content)
    reveal_type(number.content)
    reveal_type(choice.content)
    reveal_type(choices.content)
    reveal_type(form.content)
    reveal_type(Elicit("?", Order))
"""


def test_the_answer_to_a_form_has_the_type_of_the_form(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(FORMS)
    report = pyright(str(file), folder=tmp_path)
    revealed = [diagnostic["message"].rpartition(" is ")[2] for diagnostic in report["generalDiagnostics"]]
    assert revealed == [
        '"Order | None"',
        '"Order"',
        '"int | None"',
        '"str | None"',
        '"list[str] | None"',
        '"dict[str, Any] | None"',
        '"Elicit[Order]"',
    ]


OPTIONS = """
from funcmcp import MCPServer, tool

mcp = MCPServer("shop")


@mcp.tool(readonly=True)
def first() -> int:
    return 1


@tool("second", annotations={"readOnlyHint": True})
def second() -> int:
    return 1


@mcp.tool(read_only=True, title="Third")
def third() -> int:
    return 1
"""


def test_the_option_to_write_is_named_for_one_that_other_frameworks_have(tmp_path: Path) -> None:
    """mypy suggests `read_only` for `readonly` by itself."""
    file = tmp_path / "program.py"
    file.write_text(OPTIONS)
    report = pyright(str(file), folder=tmp_path)
    assert [diagnostic["message"].partition("\n")[0] for diagnostic in report["generalDiagnostics"]] == [
        'Object of type "ThisOptionIsCalled_read_only" is not callable',
        'Object of type "TheseOptionsAre_read_only_destructive_idempotent_open_world_title" is not callable',
    ]
