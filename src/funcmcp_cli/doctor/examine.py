"""``funcmcp doctor``: checks a project's folder."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from funcmcp._state.keys import PLATFORM_VARIABLES
from funcmcp._state.seal import KEY_BYTES
from funcmcp_cli.doctor import app_checks, file_checks, sign_in_checks, task_checks
from funcmcp_cli.doctor.deployed_files import check_deployed_files
from funcmcp_cli.doctor.foreign_checks import examine_custom_handler, examine_other_language
from funcmcp_cli.doctor.project import Finding, Project, read_project
from funcmcp_cli.doctor.rule_checks import check_rules
from funcmcp_cli.doctor.start_checks import (
    examine_function_app,
    has_custom_handler,
    is_plain_function_app,
    mentions_funcmcp,
)
from funcmcp_host.app_folders import apps_below, choice_of, deployed_apps
from funcmcp_host.app_rules.model import read_app
from funcmcp_host.other_languages import language_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CHECKS: tuple[Callable[[Project], Iterator[Finding]], ...] = (
    file_checks.check_host,
    file_checks.check_requirements,
    file_checks.check_python,
    file_checks.check_settings,
    file_checks.check_ignore_files,
    file_checks.check_azure_yaml,
    app_checks.check_code,
    check_deployed_files,
    app_checks.check_start,
    app_checks.check_route,
    app_checks.check_sessions,
    app_checks.check_clients,
    app_checks.check_tokens,
    sign_in_checks.check_sign_in,
    task_checks.check_packages,
    task_checks.check_queues,
    task_checks.check_time_limit,
    task_checks.check_connection,
)


def examine(folder: Path) -> list[Finding]:
    """Return the findings of all checks of a folder.

    The project's code is imported in a new process, with the settings of its local.settings.json. A function app that
    was made without funcmcp is started instead, as ``funcmcp host`` starts it.

    Raises:
        Failure: The folder does not exist, or its pyproject.toml is not valid.
    """
    deployed = deployed_apps(folder)
    if deployed:
        return [finding for service in deployed for finding in _examined_service(folder, service)]
    choice = "" if _has_files_of_an_app(folder) else choice_of(folder, apps_below(folder))
    if choice:
        return [Finding("error", "host.json", f"is not in this folder. {choice}")]
    if is_plain_function_app(folder):
        return examine_function_app(folder)
    if not mentions_funcmcp(folder):
        if has_custom_handler(folder / "host.json"):
            return examine_custom_handler(folder)
        language = language_of(folder)
        if language is not None and (folder / "host.json").is_file():
            return examine_other_language(folder, language)
        if (folder / "host.json").is_file():
            return examine_function_app(folder)  # says why the language is unknown, as `funcmcp host` does
    project = read_project(folder, _defaults(folder))
    signs_in = project.has_auth if project.code.servers else None
    app = read_app(folder, project.code.functions, signs_in=signs_in)
    findings = [finding for check in CHECKS for finding in check(project)]
    return [*findings, *app_checks.check_triggers(app), *check_rules(app)]


def _examined_service(folder: Path, service: Path) -> list[Finding]:
    ok = Finding("ok", "azure.yaml", f"deploys {service.relative_to(folder)}, which is examined.")
    return [ok, *examine(service)]


def _has_files_of_an_app(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("host.json", "function_app.py", "requirements.txt"))


def _defaults(folder: Path) -> dict[str, str]:
    """Return the variables that Azure sets and this machine may not have: keys, and those of the sign-in."""
    return {PLATFORM_VARIABLES[0]: secrets.token_hex(KEY_BYTES), **sign_in_checks.values_of_deployment(folder)}
