"""The checks of ``funcmcp doctor`` for a function app with MCP triggers that was made without funcmcp.

They start the app as ``funcmcp host`` does, and report what the host would leave out.
"""

# ruff: noqa: PLC0415 - what serves function apps is imported when there is one

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from funcmcp._adapters.azure.settings import at
from funcmcp._text.files import read_text
from funcmcp._text.jsonc import parse
from funcmcp_cli.client_rules.problems import problems_in
from funcmcp_cli.client_rules.report import short_texts
from funcmcp_cli.doctor.foreign_checks import check_plain_files
from funcmcp_cli.doctor.project import Finding, read_files, text_of_file
from funcmcp_cli.doctor.rule_checks import check_rules
from funcmcp_host.app_rules.model import read_app
from funcmcp_host.other_languages import language_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from funcmcp_host.features import LeftOut
    from funcmcp_host.served import FunctionsHost

_SUBJECT = "the app"
_NOT_SERVED = "is not supported by funcmcp host."
_ADVICE = "Run it with Azure Functions Core Tools"
_BINDING_ADVICE = f"{_ADVICE}, or access the service in the function's own code"


def is_plain_function_app(folder: Path) -> bool:
    """Return whether a folder has a function app in Python or for Node whose files do not mention funcmcp."""
    if not (folder / "host.json").is_file() or has_custom_handler(folder / "host.json"):
        return False
    if not read_files(folder).code_file.is_file():
        return (folder / "package.json").is_file() and language_of(folder) is None
    return not mentions_funcmcp(folder)


def mentions_funcmcp(folder: Path) -> bool:
    """Return whether the Python files of a folder, or its lists of packages, have the name funcmcp."""
    files = [*folder.glob("*.py"), folder / "requirements.txt", folder / "pyproject.toml"]
    return any("funcmcp" in text_of_file(file) for file in files)


def examine_function_app(folder: Path) -> list[Finding]:
    """Return what ``funcmcp host`` would serve of an app, and what it would leave out. The app's code runs."""
    from funcmcp_host.folder import FolderError
    from funcmcp_host.served import FunctionsHost

    try:
        host = FunctionsHost(folder, dict(os.environ))
    except FolderError as error:
        unserved = Finding("error", _SUBJECT, f"can't be served. {error}")
        return [*check_plain_files(folder, has_triggers=False), *check_rules(read_app(folder, {})), unserved]
    except ValueError as error:
        return [Finding("error", "the environment", f"has keys that can't be used. {error}")]
    findings = asyncio.run(_started(host))
    return [*check_plain_files(folder, has_triggers=bool(host.feature_count)), *findings]


async def _started(host: FunctionsHost) -> list[Finding]:
    from funcmcp_host.workers.worker import LoadFailed

    try:
        await host.start()
    except LoadFailed as error:
        return [Finding("error", _SUBJECT, f"can't be loaded. {error}")]
    finally:
        await host.aclose()
    return list(_findings(host))


def _findings(host: FunctionsHost) -> Iterator[Finding]:
    mcp_functions = {function.name for function in host.app.mcp_functions}
    judged = {breach.subject for breach in host.breaches if breach.rule.name == "binding-kind"}
    for left_out in host.left_out:
        if left_out.function not in judged:
            yield _finding(left_out, is_mcp=left_out.function in mcp_functions)
    yield from check_rules(host.app, host.breaches)
    for features, text in short_texts(problems_in(host.server, host.name)):
        yield Finding("warning", features, text)
    if host.feature_count:
        yield Finding("ok", _SUBJECT, f"is served by `funcmcp host` with {host.summary}.")
    elif host.http_count:
        text = f"has no MCP triggers, but {host.summary}. doctor does not check whether they serve MCP."
        yield Finding("warning", _SUBJECT, text)
    else:
        yield Finding(
            "error",
            _SUBJECT,
            "has no MCP triggers that can be served, so clients would find nothing. "
            "Register one in function_app.py (a Blueprint with app.register_functions), or in main of package.json.",
        )


def _finding(left_out: LeftOut, *, is_mcp: bool) -> Finding:
    reason = left_out.reason
    is_of_azure = reason.endswith(_NOT_SERVED)
    if is_of_azure:
        advice = _ADVICE if reason.startswith("Its trigger ") else _BINDING_ADVICE
        reason = f"{reason} {advice}."
    if left_out.is_listed:
        return Finding("error", left_out.function, f"is listed, but each call answers with an error. {reason}")
    return Finding("error" if is_mcp and not is_of_azure else "warning", left_out.function, f"is left out. {reason}")


def has_custom_handler(file: Path) -> bool:
    """Return whether a host.json starts a program of the app's own."""
    try:
        content = parse(read_text(file), comments=True).value
    except (OSError, ValueError):
        return False  # the functions host says what is wrong with the file
    return at(content, "customHandler") is not None
