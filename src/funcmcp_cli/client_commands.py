"""The commands that use a server as a client does: inspect, call, read and prompt."""

# ruff: noqa: PLC0415 - what a command needs is imported when it runs

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from funcmcp_cli.commands import Bearer, Calls, Headers, SignsIn, TargetOrURL, Verbose, app, examples
from funcmcp_cli.failure import Failure
from funcmcp_cli.output import write_line
from funcmcp_cli.program_options import ProgramOptions, program_of
from funcmcp_cli.server_options import with_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from funcmcp_cli.faults import Fault


def _complete_tool(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from funcmcp_cli.completion import tools

    return tools(context.params["target"], incomplete)


def _complete_prompt(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from funcmcp_cli.completion import prompts

    return prompts(context.params["target"], incomplete)


def _complete_uri(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from funcmcp_cli.completion import uris

    return uris(context.params["target"], incomplete)


def _complete_tool_argument(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from funcmcp_cli.completion import tool_arguments

    return tool_arguments(context.params["target"], context.params["name"], incomplete)


def _complete_prompt_argument(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from funcmcp_cli.completion import prompt_arguments

    return prompt_arguments(context.params["target"], context.params["name"], incomplete)


AsJSON = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Patterns = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME",
        help="Show only the tools, resources and prompts with these names or URIs; * stands for any characters.",
        show_default=False,
    ),
]
ShowsClients = Annotated[
    bool, typer.Option("--clients", help="Show instead what known clients and model APIs do not accept.")
]
ShowsTokens = Annotated[
    bool,
    typer.Option("--tokens", help="Show instead how many tokens each tool costs a model, the most expensive first."),
]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", metavar="N", min=0, help="Like --tokens. The exit code is 1 if the tools cost more."),
]
ForClients = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="CLIENTS",
        help="Like --clients, for these clients only. Pass parts of their names, such as claude,openai.",
        show_default=False,
    ),
]
Save = Annotated[
    Path | None,
    typer.Option(
        "--save",
        metavar="DIR",
        help="Write the images, sounds and files of the result into this folder. No file is replaced.",
        show_default=False,
    ),
]


@app.command(
    epilog=examples(
        "funcmcp inspect server.py",
        "funcmcp inspect server.py 'order*'",
        "funcmcp inspect https://example.com/mcp --bearer TOKEN --json",
    )
)
@with_options
def inspect(  # noqa: PLR0913 - one for each option of the command
    target: TargetOrURL,
    patterns: Patterns = None,
    *,
    as_json: AsJSON = False,
    clients: ShowsClients = False,
    for_clients: ForClients = None,
    tokens: ShowsTokens = False,
    max_tokens: MaxTokens = None,
    calls: Calls = None,
    header: Headers = None,
    bearer: Bearer = None,
    sign_in: SignsIn = False,
    options: ProgramOptions,
) -> None:
    """Show a server's description, tools, resources and prompts. The exit code is 1 if one cannot be listed.

    A long list has one line for each feature; NAME shows all of it. With --clients the exit code is 1 also if a known
    client loses a tool, a resource or a prompt; with --for, if one of these clients does.
    """
    from funcmcp_cli.calls import read_calls
    from funcmcp_cli.connect import inspect_server, open_source, unlisted_tools
    from funcmcp_cli.hidden_characters import hidden_in_server
    from funcmcp_cli.output import write_json
    from funcmcp_cli.show import only_named, print_server

    counts_tokens = tokens or max_tokens is not None
    counted = _counted_clients(for_clients) if clients or for_clients is not None else None
    _check_reports(calls=calls is not None, as_json=as_json, clients=counted is not None, tokens=counts_tokens)
    program = program_of(options)
    source = open_source(target, headers=header or [], bearer=bearer, sign_in=sign_in, program=program)
    facts, faults = asyncio.run(inspect_server(source, [] if calls is None else read_calls(calls)))
    if patterns:
        tools = [*facts["tools"], *unlisted_tools(source, facts["tools"])]
        facts = only_named({**facts, "tools": tools}, patterns)
    is_accepted = True
    if counts_tokens:
        from funcmcp_cli.token_costs import report_tokens

        is_accepted = report_tokens(facts, source.server, as_json=as_json, limit=max_tokens)
    elif counted is not None:
        from funcmcp_cli.client_rules.report import report_problems

        is_accepted = report_problems(source, facts, faults, as_json=as_json, clients=counted)
    elif as_json:
        write_json(facts)
    else:
        print_server(facts)
    for sentence in hidden_in_server(facts):
        write_line(f"Warning: {sentence}", error=True)
    _end(faults, is_accepted=is_accepted)


def _check_reports(*, calls: bool, as_json: bool, clients: bool, tokens: bool) -> None:
    """Raise BadParameter for options of reports that exclude each other, and for calls that no report shows."""
    if calls and not as_json and not clients:
        raise typer.BadParameter("--calls needs --json or --clients.")
    if tokens and clients:
        raise typer.BadParameter("--tokens and --clients are two reports. Choose one of them.")


def _end(faults: Sequence[Fault], *, is_accepted: bool) -> None:
    """Print the faults of a server, and exit with 1 if there are some or a report has not accepted the server."""
    from funcmcp_cli.faults import write_faults

    write_faults(faults)
    if faults or not is_accepted:
        raise typer.Exit(1)


def _counted_clients(names: str | None) -> Sequence[str]:
    """Return the clients of the rules that ``--for`` names; all of them without it."""
    from funcmcp_cli.client_rules.report import clients_named
    from funcmcp_cli.client_rules.rules import CLIENTS

    if names is None:
        return CLIENTS
    try:
        return clients_named(names)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--for") from None


def _check_words(target: str, name: str, pairs: Sequence[str]) -> None:
    """Raise BadParameter or Failure if a word is an unknown option, or the server is missing."""
    words = [target, name, *pairs]
    options = [word for word in words if word.startswith("-") and "--" not in sys.argv]
    if options:
        following = [*words[words.index(options[0]) + 1 :], "VALUE"]
        key, equals, value = options[0].lstrip("-").partition("=")
        pair = f"{key}={value if equals else following[0]}"
        raise typer.BadParameter(f"No such option: {options[0]}. Arguments of the tool are written as {pair}")
    if "=" in name:
        raise Failure(f"The server is missing: funcmcp call server.py {target} {shlex.join([name, *pairs])}")


@app.command(
    context_settings={"ignore_unknown_options": True},  # `_check_words` names how arguments are written
    epilog=examples(
        "funcmcp call server.py order dish=Soup portions=2",
        "funcmcp call server.py import_orders file=@orders.csv",
        """funcmcp call server.py order --input-json '{"dish": "Soup"}' --json""",
    ),
)
@with_options
def call(  # noqa: PLR0913 - one for each option of the command
    target: TargetOrURL,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The tool's name.", show_default=False, autocompletion=_complete_tool),
    ],
    pairs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="Arguments, one by one. KEY=@FILE takes the value from a file, and KEY=@- from stdin.",
            show_default=False,
            autocompletion=_complete_tool_argument,
        ),
    ] = None,
    *,
    input_json: Annotated[
        str | None,
        typer.Option(metavar="OBJECT", help="All arguments as one JSON object; @FILE for a file, and @- for stdin."),
    ] = None,
    as_json: AsJSON = False,
    save: Save = None,
    header: Headers = None,
    bearer: Bearer = None,
    sign_in: SignsIn = False,
    verbose: Verbose = False,
    options: ProgramOptions,
) -> None:
    """Call a tool and print its result. A tool's error goes to stderr, with exit code 1.

    If the server runs the call as a task, the command waits for its end. Ctrl+C cancels the task.
    """
    from funcmcp_cli import interrupts, show
    from funcmcp_cli.connect import call_tool, open_source
    from funcmcp_cli.terminal import ProgressDisplay

    program = program_of(options)
    _check_words(target, name, pairs or [])
    source = open_source(target, headers=header or [], bearer=bearer, sign_in=sign_in, program=program, verbose=verbose)
    display = ProgressDisplay(verbose=verbose)
    result = interrupts.run(call_tool(source, name, pairs or [], input_json, display), display.interrupt)
    show.print_result(result, save, as_json=as_json)
    if result.get("isError"):
        raise typer.Exit(1)


@app.command(
    epilog=examples("funcmcp read server.py menu://today", "funcmcp read server.py menu://logo --save pictures")
)
@with_options
def read(  # noqa: PLR0913 - one for each option of the command
    target: TargetOrURL,
    uri: Annotated[
        str, typer.Argument(metavar="URI", help="The resource's URI.", show_default=False, autocompletion=_complete_uri)
    ],
    *,
    as_json: AsJSON = False,
    save: Save = None,
    header: Headers = None,
    bearer: Bearer = None,
    sign_in: SignsIn = False,
    verbose: Verbose = False,
    options: ProgramOptions,
) -> None:
    """Read a resource and print its contents. Bytes are printed only into a file or a pipe."""
    from funcmcp_cli import show
    from funcmcp_cli.connect import open_source, read_resource

    program = program_of(options)
    source = open_source(target, headers=header or [], bearer=bearer, sign_in=sign_in, program=program, verbose=verbose)
    show.print_contents(asyncio.run(read_resource(source, uri)), save, as_json=as_json)


@app.command(epilog=examples("funcmcp prompt server.py suggest taste=hot"))
@with_options
def prompt(  # noqa: PLR0913 - one for each option of the command
    target: TargetOrURL,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="The prompt's name.", show_default=False, autocompletion=_complete_prompt),
    ],
    pairs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="Arguments, one by one, as for call.",
            show_default=False,
            autocompletion=_complete_prompt_argument,
        ),
    ] = None,
    *,
    as_json: AsJSON = False,
    header: Headers = None,
    bearer: Bearer = None,
    sign_in: SignsIn = False,
    verbose: Verbose = False,
    options: ProgramOptions,
) -> None:
    """Get a prompt and print its messages, each with its role."""
    from funcmcp_cli import show
    from funcmcp_cli.connect import get_prompt, open_source

    program = program_of(options)
    source = open_source(target, headers=header or [], bearer=bearer, sign_in=sign_in, program=program, verbose=verbose)
    show.print_messages(asyncio.run(get_prompt(source, name, pairs or [])), as_json=as_json)
