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

_OF_HORIZON = "It belongs to Prefect Horizon. To sign in at a server, pass --sign-in to the command that uses it."
_WITHOUT_COMMAND = {
    "auth": "A client ID metadata document is a JSON file that you write and publish.",
    "generate-cli": "Each tool can be called without a program of its own: funcmcp call SERVER NAME key=value",
    "login": _OF_HORIZON,
    "logout": _OF_HORIZON,
    "project": "uv prepares the environment of a project: uv sync",
    "whoami": _OF_HORIZON,
}
"""Commands that do not exist here, and what to do."""

_HTTP_OR_STDIO = "run serves HTTP, and --stdio serves stdin and stdout."
_SSE = "SSE was replaced by Streamable HTTP, which run serves at /mcp. --stdio serves stdin and stdout."
_UV_RUN = "Start the command with uv: uv run {} funcmcp run server.py."
_CALL = "Write the tool and its arguments after the server: funcmcp call server.py NAME key=value."

_AUTH = "Write --sign-in for a browser, or --bearer TOKEN."
_JSON = "Write --json, and send the output into a file: funcmcp inspect server.py --json > FILE."
_NO_TIMEOUT = "The command waits for the server; Ctrl+C ends it."
_UV_INSPECT = "Start the command with uv: uv run {} funcmcp inspect server.py."

_OPTIONS = {
    "run": {
        "--module": "Write the module as the server: funcmcp run package.module.",
        "--no-banner": "There is no banner.",
        "--path": "Write MCPServer(http=HTTPOptions(path=...)) in the code, and --root-path for a path of a proxy.",
        "--project": _UV_RUN.format("--project DIR"),
        "--reload-dir": "--reload watches the folder of the server.",
        "--server-spec": "Write the server as the first argument: funcmcp run server.py.",
        "--skip-source": "The server runs from the files that are there.",
        "--python": _UV_RUN.format("--python VERSION"),
        "--skip-env": "The server runs in the Python environment of this command.",
        "--stateless": "Sessions are signed, so that every process can serve them.",
        "--transport": _HTTP_OR_STDIO,
        "--with": _UV_RUN.format("--with PACKAGE"),
        "--with-editable": _UV_RUN.format("--with-editable DIR"),
        "--with-requirements": _UV_RUN.format("--with-requirements FILE"),
        "-l": "Write --log-level, with a level in small letters: --log-level debug.",
        "-m": "Write the module as the server: funcmcp run package.module.",
        "-t": _HTTP_OR_STDIO,
    },
    "call": {
        "--args": _CALL,
        "--arguments": _CALL,
        "--auth": _AUTH,
        "--command": "Write the command in quotes as the server: funcmcp call 'npx -y SERVER' NAME key=value.",
        "--params": _CALL,
        "--prompt": "Write funcmcp prompt server.py NAME key=value.",
        "--server-spec": _CALL,
        "--target": _CALL,
        "--timeout": _NO_TIMEOUT,
        "--tool": _CALL,
        "--transport": "A URL needs no transport.",
        "-t": "A URL needs no transport.",
    },
    "inspect": {
        "--command": "Write the command in quotes as the server: funcmcp inspect 'npx -y SERVER'.",
        "--format": _JSON,
        "--output": _JSON,
        "--project": _UV_INSPECT.format("--project DIR"),
        "--python": _UV_INSPECT.format("--python VERSION"),
        "--server-spec": "Write the server as the first argument: funcmcp inspect server.py.",
        "--skip-env": "The server is imported in the Python environment of this command.",
        "--with": _UV_INSPECT.format("--with PACKAGE"),
        "--with-requirements": _UV_INSPECT.format("--with-requirements FILE"),
        "--auth": _AUTH,
        "--timeout": _NO_TIMEOUT,
        "-f": _JSON,
        "-o": _JSON,
    },
    "discover": {
        "--source": "The files of all clients are read. Choose from the output, or pass --json.",
    },
    "install": {
        "--config-path": "Write --file with the path of the file itself.",
        "--copy": "Pipe the output into a program for the clipboard, such as pbcopy, clip or xclip.",
        "--env-var": "Write --env NAME=VALUE.",
        "--project": "The entry runs the project of the server: --runner uv.",
        "--python": "Pass the version to uv, and let it run this command: uvx --python VERSION funcmcp install ...",
        "--server-spec": "Write the server after the client: funcmcp install CLIENT server.py.",
        "--with-editable": "Add the folder to the project, with uv add --editable DIR, and pass --runner uv.",
        "-f": "Write --env-file FILE.",
        "-n": "Write --name NAME.",
        "-v": "Write --env NAME=VALUE.",
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
    if name in _WITHOUT_COMMAND:
        return f"No such command '{name}'. {_WITHOUT_COMMAND[name]}"
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
