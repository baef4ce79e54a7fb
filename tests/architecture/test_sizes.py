"""How much code there is: the budget of each package, and modules that stand alone for a reason."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path
from typing import TYPE_CHECKING

from tests.architecture.trees import is_written_by_a_script, tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
ARCHITECTURE = ROOT / "docs" / "development" / "architecture.md"
PACKAGES = ("funcmcp", "funcmcp_cli", "funcmcp_host")

LONG_ENOUGH = 300
"""Lines of a module that stands alone by its size."""
TOO_LONG = 450
"""Lines of two modules that are not put together."""

STAND_ALONE = {
    "funcmcp._compat.component_features": "It makes the features of components; registration says when.",
    "funcmcp._compat.live_components": "What a change of a definition does; lists only hand definitions out.",
    "funcmcp._compat.server_contexts": "One module for each part of the server, as server_lists is.",
    "funcmcp._transports.http.streams.eager_tasks": "Tasks of asyncio; a module that Python 3.12 makes needless.",
    "funcmcp._providers.mounted_callers": "It is a kind of source for what has providers, and knows mounts.",
    "funcmcp._compat.file_discovery": "It imports modules; the provider says when, and keeps what is in them.",
    "funcmcp._adapters.azure.triggers.invocation": "It reads what Azure passes, and registration describes features.",
    "funcmcp._adapters.azure.triggers.result_envelopes": "It writes what Azure reads; as above.",
    "funcmcp._adapters.azure.triggers.unsupported": "It says what Azure can't do, before anything is registered.",
    "funcmcp._adapters.redis.masters": "Sentinel and clusters, which most servers do not load.",
    "funcmcp._authoring.calling.prompt_call": "A layer: features know functions, calling runs them.",
    "funcmcp._compat.mixin": "A class for authors; the bulk calls are one of its users.",
    "funcmcp._compat.notification_hooks": "Tasks for notifications; the server only knows where they come from.",
    "funcmcp._authoring.openapi.pages": "Conventions of APIs, which know no tools.",
    "funcmcp._authoring.schemas.hash_limits": "A defence of its own against values with equal hashes.",
    "funcmcp._client.orphans": "A program of its own, which outlives the process.",
    "funcmcp._oauth_proxy.renewals": "Memory between requests; the settings only hold it.",
    "funcmcp._page.app_frame": "Another document, with a policy of its own.",
    "funcmcp._transports.http.admission.this_machine": "Which requests are refused, whatever the options are.",
    "funcmcp._providers.uri_references": "Where the protocol names resources; the prefix is one user of these places.",
    "funcmcp._text.canonical_json": "RFC 8785, whose examples are its tests.",
    "funcmcp._transports.http.admission.rate_limits": "A reader looks for this name.",
    "funcmcp._transports.http.endpoints.per_request": "An era of its own, as handshake is.",
    "funcmcp_cli.doctor.app_checks": "One module for each subject that doctor checks.",
    "funcmcp_cli.doctor.sign_in_checks": "One module for each subject that doctor checks.",
    "funcmcp_cli.doctor.task_checks": "One module for each subject that doctor checks.",
    "funcmcp_cli.install.forms": "Links and texts that are in no file of a client.",
    "funcmcp_cli.install.json_edits": "Edits of texts, which know no clients.",
    "funcmcp_cli.migrate.server_rewriting": "One module for each kind of server, as azure_rewriting is.",
    "funcmcp_cli.saving": "It writes files with names that servers choose; its tests are attacks.",
    "funcmcp_host.app_rules.node_rules": "One module for each subject of the rules.",
    "funcmcp_host.workers.frames": "A format, which the programs of the other side have a second time.",
}
"""Modules that one module imports and that are short, and why they are not a part of it."""


def lines_of_code(path: Path) -> int:
    """Return the number of lines that are not empty, and neither comments nor docstrings."""
    texts: set[int] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            texts.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    return sum(1 for number, line in lines if number not in texts and line.strip() and line.strip()[0] != "#")


def budgets() -> dict[str, int]:
    """Return the lines of code that architecture.md allows each part."""
    text = ARCHITECTURE.read_text(encoding="utf-8").partition("### Budgets")[2].partition("\n#")[0]
    rows = re.findall(r"^\| `(\S+)` \| ([\d,]+) \|", text, re.MULTILINE)
    return {name: int(size.replace(",", "")) for name, size in rows}


def parts() -> dict[str, int]:
    """Return the lines of code of each package of the library, of its other modules, and of the other two packages."""
    sizes: dict[str, int] = {}
    for path in modules().values():
        package, *rest = path.relative_to(SOURCE).parts
        name = f"{package}.{rest[0]}" if package == "funcmcp" and len(rest) > 1 else package
        sizes[name] = sizes.get(name, 0) + lines_of_code(path)
    return sizes


@functools.cache
def modules() -> dict[str, Path]:
    """Return the files of all modules by their names."""
    paths = {path for package in PACKAGES for path in (SOURCE / package).rglob("*.py")}
    files = {path for path in paths if "templates" not in path.parts and not is_written_by_a_script(path)}
    names = {path: ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__") for path in files}
    return {name: path for path, name in sorted(names.items())}


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Yield the names of the modules that a module, or a part of it, imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in modules() else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@functools.cache
def importers() -> dict[str, set[str]]:
    """Return the modules that import each module."""
    users: dict[str, set[str]] = {name: set() for name in modules()}
    for name, path in modules().items():
        for imported in set(imports_of(tree_of(path))) - {name}:
            if imported in users:
                users[imported].add(name)
    return users


def lines(name: str) -> int:
    return len(modules()[name].read_text(encoding="utf-8").splitlines())


def is_public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


def neighbour_of(name: str) -> str | None:
    """Return the only module that imports a module, and that could contain it; None if there is none."""
    if len(importers()[name]) != 1 or modules()[name].name == "__init__.py":
        return None
    [user] = importers()[name]
    is_late = name not in loaded_by(user) or (user.startswith("funcmcp.") and is_public(user))
    fits = lines(name) < LONG_ENOUGH and lines(name) + lines(user) <= TOO_LONG
    return user if fits and not is_late else None


def loaded_by(name: str) -> set[str]:
    """Return what a module imports at its top level, for type checkers included."""
    top = [node for node in tree_of(modules()[name]).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return {imported for node in top for imported in imports_of(node)}


def test_no_part_exceeds_its_budget() -> None:
    allowed = budgets()
    assert parts().keys() == allowed.keys()
    exceeded = {name: (size, allowed[name]) for name, size in parts().items() if size > allowed[name]}
    assert not exceeded, f"Raise the budget in architecture.md, with the reason in the commit: {exceeded}"


def test_no_budget_is_much_larger_than_its_part() -> None:
    loose = {name: (size, budgets()[name]) for name, size in parts().items() if budgets()[name] > 1.1 * size + 50}
    assert not loose, f"Lower the budget in architecture.md: {loose}"


def test_a_module_stands_alone_for_a_reason() -> None:
    short = {name: user for name in modules() if (user := neighbour_of(name)) and name not in STAND_ALONE}
    assert not short, "\n".join(
        ["Put each into its only user, or name it in STAND_ALONE with the reason:"]
        + [f"{name}: {user}" for name, user in short.items()]
    )


def test_an_exception_is_one() -> None:
    assert not [name for name in STAND_ALONE if name not in modules() or neighbour_of(name) is None]
