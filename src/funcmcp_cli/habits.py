"""Commands and options of FastMCP, of the official SDK and of similar programs, and what they are called here."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMANDS = {
    "add": "install CLIENT server.py",
    "bridge": "run URL --stdio",
    "create": "new",
    "dev": "run --reload (or funcmcp inspect, for a list of the features)",
    "get": "read",
    "init": "new",
    "inspector": "inspect (or funcmcp run, and open the endpoint in a browser)",
    "list": "inspect",
    "prompts": "inspect",
    "proxy": "run URL",
    "resources": "inspect",
    "serve": "run",
    "start": "run (or funcmcp host for a function app)",
    "test": "call",
    "tools": "inspect",
    "validate": "doctor",
    "version": "--version",
}
"""Commands that have another name here."""

_HTTP_OR_STDIO = "run serves HTTP, and --stdio serves stdin and stdout."
_SSE = "SSE was replaced by Streamable HTTP, which run serves at /mcp. --stdio serves stdin and stdout."
_UV_RUN = "Start the command with uv: uv run {} funcmcp run server.py."
_CALL = "Write the tool and its arguments after the server: funcmcp call server.py NAME key=value."

_OPTIONS = {
    "run": {
        "--module": "Write the module as the server: funcmcp run package.module.",
        "--no-banner": "There is no banner.",
        "--path": "Write MCPServer(http=HTTPOptions(path=...)) in the code, and --root-path for a path of a proxy.",
        "--project": _UV_RUN.format("--project DIR"),
        "--python": _UV_RUN.format("--python VERSION"),
        "--skip-env": "The server runs in the Python environment of this command.",
        "--stateless": "Sessions are signed, so that every process can serve them.",
        "--transport": _HTTP_OR_STDIO,
        "--with": _UV_RUN.format("--with PACKAGE"),
        "--with-editable": _UV_RUN.format("--with-editable DIR"),
        "--with-requirements": _UV_RUN.format("--with-requirements FILE"),
        "-m": "Write the module as the server: funcmcp run package.module.",
        "-t": _HTTP_OR_STDIO,
    },
    "call": {
        "--args": _CALL,
        "--arguments": _CALL,
        "--params": _CALL,
        "--tool": _CALL,
    },
}
"""By command, options that do not exist here, and what to use."""

_OPTIONS_BEFORE_COMMANDS = ("--version", "--help", "-h", "--install-completion", "--show-completion")


def correction_of(arguments: Sequence[str]) -> str | None:
    """Return a line with the name that a command, or an option of a command, has here.

    Args:
        arguments: What the user wrote after ``funcmcp``.

    Returns:
        The line; None if there is no such command or option among the arguments.
    """
    name, *following = arguments or [""]
    if name in _COMMANDS:
        return f"No such command '{name}'. Did you mean funcmcp {_COMMANDS[name]}?"
    if name.startswith("-") and name not in _OPTIONS_BEFORE_COMMANDS:
        return f"No such option: {name}. The command comes first, then the server: funcmcp run server.py"
    options = _OPTIONS.get(name, {})
    before_arguments = list(itertools.takewhile(lambda argument: argument != "--", following))
    for position, argument in enumerate(before_arguments):
        option, _, value = argument.partition("=")
        if option in options:
            value = value or "".join(before_arguments[position + 1 : position + 2])
            advice = _SSE if value == "sse" else options[option]
            return f"No such option: {option}. {advice}"
    return None
