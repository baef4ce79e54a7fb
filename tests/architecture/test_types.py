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

pytestmark = pytest.mark.slow("pyright reads all packages, and mypy checks most of it before.")

SOURCE = Path(__file__).parents[2] / "src"


def pyright(*arguments: str, folder: Path) -> dict[str, Any]:
    """Return what pyright reports, with this Python's packages and the sources of funcmcp."""
    program = nodejs.package("pyright") / "index.js"
    command = [str(nodejs.node()), str(program), "--outputjson", "--pythonpath", sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    run = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=2 * PATIENCE, cwd=folder, env=environment
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


PUBLIC_MODULES = ("funcmcp", "funcmcp.auth", "funcmcp.client", "funcmcp.compat", "funcmcp.content")

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


@pytest.fixture(scope="module")
def diagnostics(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What pyright reports of each program, by its name. It reads the packages once for all of them."""
    programs = {module: f"from {module} import no_such_name\n" for module in PUBLIC_MODULES}
    programs |= {"forms": FORMS, "options": OPTIONS}
    folder = tmp_path_factory.mktemp("programs")
    files = {name: folder / f"{name.replace('.', '_')}_program.py" for name in programs}
    for name, file in files.items():
        file.write_text(programs[name])
    reported = pyright(*map(str, files.values()), folder=folder)["generalDiagnostics"]
    return {name: [item for item in reported if Path(item["file"]).name == file.name] for name, file in files.items()}


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_a_name_that_a_public_module_does_not_have_is_an_error(
    diagnostics: dict[str, list[dict[str, Any]]], module: str
) -> None:
    assert [diagnostic["rule"] for diagnostic in diagnostics[module]] == ["reportAttributeAccessIssue"]


def test_the_answer_to_a_form_has_the_type_of_the_form(diagnostics: dict[str, list[dict[str, Any]]]) -> None:
    revealed = [diagnostic["message"].rpartition(" is ")[2] for diagnostic in diagnostics["forms"]]
    assert revealed == [
        '"Order | None"',
        '"Order"',
        '"int | None"',
        '"str | None"',
        '"list[str] | None"',
        '"dict[str, Any] | None"',
        '"Elicit[Order]"',
    ]


def test_the_option_to_write_is_named_for_one_that_other_frameworks_have(
    diagnostics: dict[str, list[dict[str, Any]]],
) -> None:
    """mypy suggests `read_only` for `readonly` by itself."""
    assert [diagnostic["message"].partition("\n")[0] for diagnostic in diagnostics["options"]] == [
        'Object of type "ThisOptionIsCalled_read_only" is not callable',
        'Object of type "TheseOptionsAre_read_only_destructive_idempotent_open_world_title" is not callable',
    ]
