"""docs/reference/limits.md names each option with its default, and each resource with its shares and its test."""

from __future__ import annotations

import importlib
import re
from dataclasses import Field, fields
from pathlib import Path

import pytest

from funcmcp._server.limits import Limits
from funcmcp._state.tasks.store import TaskLimits
from fuzz.memory import MAX_GROWTH

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")


def default_of(name: str) -> str:
    """Return an option's default as the table has it, such as "4 MiB"."""
    value = getattr(Limits(), name)
    if value is None and not name.endswith("_per_principal"):
        return "none"
    if value is None:
        value = Limits().share_of(name.removesuffix("_per_principal"))
    if "bytes" in name:
        return f"{value // 1024**2} MiB" if value % 1024**2 == 0 else f"{value // 1024} KiB"
    return f"{value:,.0f}"


@pytest.mark.parametrize("option", fields(Limits), ids=lambda option: option.name)
def test_an_option_has_a_row_with_its_default(option: Field[object]) -> None:
    [row] = [line for line in TEXT.splitlines() if line.startswith(f"| `{option.name}` |")]
    assert row.split(" | ")[1].partition(" (")[0] == default_of(option.name)


ROOT = Path(__file__).parents[2]
SHARES = [
    line.strip("|").split("|")
    for line in TEXT.partition("| resource | total |")[2].partition("\n\n")[0].splitlines()[2:]
]
SESSION_OPTIONS = ["MemorySessions(limit=)", "MemorySessions(per_principal=)"]
SESSION_OPTIONS += ["RedisSessions(anonymous=)", "RedisSessions(per_principal=)"]
UPSTREAM_OPTIONS = ["UpstreamLimits.sessions", "UpstreamLimits.processes", "UpstreamLimits.sessions_per_caller"]


def test_the_table_of_shares_has_each_option() -> None:
    options = {option for row in SHARES for option in re.findall(r"`([^`:]+)`", "|".join(row[1:4]))}
    expected = {f"Limits.{option.name}" for option in fields(Limits)}
    expected |= {f"TaskLimits.{option.name}" for option in fields(TaskLimits)}
    expected |= {*SESSION_OPTIONS, *UPSTREAM_OPTIONS, "RedisRevocations(limit=)"}
    assert expected <= options
    assert {option for option in options if "." in option} <= expected


@pytest.mark.parametrize("row", SHARES, ids=[row[0].strip() for row in SHARES])
def test_each_resource_has_a_total_or_a_share_and_a_test_that_exists(row: list[str]) -> None:
    _, total, share, address_share, test = (cell.strip() for cell in row)
    assert total or share
    assert address_share
    path, _, name = test.strip("`").partition("::")
    assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8")


def test_the_goal_of_the_fuzzer_is_that_of_the_page() -> None:
    [(worst, goal)] = re.findall(r"found is (\d+) MiB .*?the goal is (\d+) MiB at most", TEXT.replace("\n", " "))
    assert int(worst) <= int(goal) == MAX_GROWTH


FIXED = {
    "_processes.uvicorn_server:_HANDSHAKE_SECONDS": "10 | seconds | of the handshake of TLS",
    "_auth.api_key:_MIN_KEY_LENGTH": "16 | characters | at least, of an API key",
    "_auth.tokens.claims:_MAX_LEEWAY": "60; 300 at most | seconds",
    "_auth.tokens.keys:_MAX_KEYS": "100 | keys",
    "_authoring.schemas.argument_errors:MAX_LINES": "20 | errors",
    "_authoring.schemas.iterators:MAX_MEMBERS": "1,000,000 | members | of an iterator",
    "_authoring.schemas.json_schema:_MAX_EXPANSIONS": "1,000 | copies",
    "_authoring.features.folder_resources:_MAX_ENTRIES": (
        "100,000 | files and folders | that one list of a folder looks at"
    ),
    "_adapters.azure.tasks:_MAX_DELIVERIES": "5 | deliveries",
    "_adapters.azure.triggers.binding_json:_DEEPEST": "32 | levels | of `_meta` behind",
    "funcmcp_cli.connect:_MAX_TOTAL_BYTES": "any; 256 MiB in a command | bytes",
    "funcmcp_cli.install.files:_MAX_BYTES": "16 MiB | bytes | of a client's file",
    "_client_api.connection:_MAX_ROUNDS": "20 | rounds",
    "_client.messages:_MAX_VALUES": "2,000,000 | JSON values",
    "_client.requests:_MAX_PAGES": "1,000 | pages",
    "_oauth_proxy.client_documents:_MAX_DOCUMENT": "5 KiB | bytes | of the document",
    "_oauth_proxy.flows:CODE_SECONDS": "60 | seconds | from the end of a sign-in",
    "_oauth_proxy.redirect_uris:MAX_CHARACTERS": "2,048 | characters | of the redirect URIs",
    "_oauth_proxy.redirect_uris:MAX_URIS": "16 | URIs",
    "_oauth_proxy.stored_sign_ins:MAX_PER_USER": "100 | sign-ins",
    "_oauth_proxy.stored_sign_ins:REPEAT_SECONDS": "30 | seconds | in which a repeated refresh",
    "_oauth_proxy.upstream:_MAX_ANSWER": "256 KiB | bytes | of an answer of the identity provider",
    "_server.calls.task_call:MAX_MESSAGE": "1,000 | characters | of a status message",
    "_server.drain:DEFAULT_SECONDS": "7 | seconds | that calls and tasks",
    "_server.log:MAX_QUOTED": "200 | characters | of a client's data",
    "_server.log:_TRACEBACK_SIZE": "200,000 | characters",
    "_server.recent_failures:_MAX_TEXT": "20,000 | characters | of one of these failures",
    "_middleware.response_cache:SLOT_BYTES": "16 MiB; in a store 64 KiB | bytes",
    "_state.caller_state:MAX_NAME_BYTES": "200 | bytes | of the name of a value",
    "_transports.http.endpoints.health:_CHECK_SECONDS": "2 | seconds | for all functions",
    "_transports.http.options:_KEEP_ALIVE_SECONDS": "95 | seconds",
    "_transports.http.streams.sse:KEEP_ALIVE_SECONDS": "15 | seconds",
}
"""Constants, and the cells of their row that contain the value."""


@pytest.mark.parametrize("name", FIXED)
def test_a_fixed_limit_has_its_value_in_the_page(name: str) -> None:
    module, _, constant = name.partition(":")
    value = getattr(importlib.import_module(module if module.startswith("funcmcp_") else f"funcmcp.{module}"), constant)
    cells = FIXED[name]
    assert TEXT.count(f"| {cells}") == 1
    forms = {f"{value:,.0f}", f"{value / 1024:.0f} KiB", f"{value / 1024**2:.0f} MiB"}
    assert forms & set(re.findall(r"[\d,]+(?: [KM]iB)?", cells))


PAGE_FILES = ROOT / "src" / "funcmcp" / "_page" / "files"
PAGE_LIMITS = {
    "page.js": ("MAX_FEATURES", "MAX_LISTED"),
    "fields.js": ("MAX_FORM", "MAX_FIELDS", "MAX_CHOICES", "MAX_VARIANTS", "MAX_DEPTH", "MAX_NAME", "MAX_HELP"),
    "questions.js": ("MAX_QUESTIONS",),
    "results.js": ("MAX_BLOCKS", "MAX_TEXTS"),
    "elements.js": ("MAX_SHOWN", "MAX_FAILURE"),
    "calls.js": ("MAX_LOG", "MAX_LOGGED", "MAX_EXCHANGES"),
    "protocol.js": ("MAX_MESSAGES",),
    "activity.js": ("MAX_ACTIVITY", "MAX_TASKS"),
    "history.js": ("MAX_EARLIER", "MAX_DIFFERENT_LINES", "MAX_COMPARED"),
    "images.js": ("MAX_SVG", "MAX_SVG_PARTS", "MAX_PIXELS"),
    "icons.js": ("MAX_ICON_FILES", "MAX_ICONS"),
    "apps.js": ("MAX_APP", "MAX_APP_MESSAGE", "MAX_APP_MESSAGES", "MAX_APP_TRAFFIC"),
    "markdown.js": ("MAX_MARKDOWN",),
    "snippets.js": ("MAX_LINK",),
}


@pytest.mark.parametrize("file", PAGE_LIMITS)
def test_the_limits_of_the_page_are_those_of_its_scripts(file: str) -> None:
    section = TEXT.partition("### The page\n")[2].partition("\n### ")[0]
    values = {value for row in section.splitlines() for value in row.split(" | ")[1:2] for value in value.split("; ")}
    script = (PAGE_FILES / file).read_text(encoding="utf-8")
    constants = dict(re.findall(r"^const (MAX_[A-Z_]+) = ([\d_]+);", script, re.MULTILINE))
    assert {f"{int(constants[name]):,}" for name in PAGE_LIMITS[file]} <= values
