"""Errors for wrong arguments of `MCPServer`: they name the option to use."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from funcmcp._server.limits import Limits
from funcmcp._server.options import ListOptions, ServerInfo
from funcmcp._transports.http.options import HTTPOptions

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., None]")

_OPTIONS_ELSEWHERE = {
    "bus": "sessions=SignedSessions(bus=...) or a store that has a bus, such as RedisSessions",
    "host": "mcp.run(host=...)",
    "keys": "sessions=SignedSessions(keys=...), or keys= of another store",
    "lifespan": "@mcp.add_lifespan",
    "list_page_size": "lists=ListOptions(page_size=...)",
    "mask_error_details": "show_errors=",
    "message_path": "http=HTTPOptions(sse=...)",
    "mount_path": "Starlette(routes=[Mount(path, mcp)], lifespan=mcp.lifespan)",
    "port": "mcp.run(port=...)",
    "sse_path": "http=HTTPOptions(sse=...)",
    "stateless_http": "sessions=None",
    "streamable_http_path": "http=HTTPOptions(path=...)",
    "strict_input_validation": "lax=",
    "token_verifier": "auth=",
    "transport": "mcp.run(...)",
    "transport_security": "http=HTTPOptions(allowed_hosts=..., allowed_origins=...)",
    **{option.name: f"http=HTTPOptions({option.name}=...)" for option in fields(HTTPOptions)},
    **{option.name: f"info=ServerInfo({option.name}=...)" for option in fields(ServerInfo)},
    **{option.name: f"lists=ListOptions({option.name}=...)" for option in fields(ListOptions)},
}
"""What to use in place of options that are in another place, or that only other frameworks have."""

_NOT_NEEDED = {
    "custom_route": "Write @mcp.custom_route(path) above a function.",
    "debug": "Run the server with funcmcp run --log-level debug, or set the level of the logger 'funcmcp'.",
    "dependencies": "Write them into pyproject.toml.",
    "event_store": "sessions='memory' and RedisSessions resume broken streams without one.",
    "exclude_tags": "Call mcp.disable(tags=...).",
    "include_tags": "Call mcp.enable(tags=..., only=True).",
    "json_response": "Leave it out: a response is JSON unless the tool sends other messages before it.",
    "log_level": "Run the server with funcmcp run --log-level, or set the level of the logger 'funcmcp'.",
    "mount": "Call mcp.mount(server, prefix=...).",
    "on_duplicate": "Leave it out: a name that is taken is an error. Remove the other feature first.",
    "on_duplicate_prompts": "Leave it out: a name that is taken is an error. Call mcp.remove_prompt first.",
    "on_duplicate_resources": "Leave it out: a URI that is taken is an error. Call mcp.remove_resource first.",
    "on_duplicate_tools": "Leave it out: a name that is taken is an error. Call mcp.remove_tool first.",
    "prompts": "Call mcp.prompt(function) for each of them.",
    "resources": "Write @mcp.resource(uri) above each of them.",
    "tags": "Pass tags= to single tools, resources and prompts.",
    "tools": "Call mcp.tool(function) for each of them.",
    "warn_on_duplicate_prompts": "Leave it out: a name that is taken is an error.",
    "warn_on_duplicate_resources": "Leave it out: a URI that is taken is an error.",
    "warn_on_duplicate_tools": "Leave it out: a name that is taken is an error.",
}
"""What to do about options of other frameworks that have no counterpart among the options."""

_TYPES = {"info": ServerInfo, "http": HTTPOptions, "lists": ListOptions, "limits": Limits}


def explains_options(init: F) -> F:
    """Make the constructor of `MCPServer` raise TypeError with the right option for a wrong one.

    The errors are for options that do not exist, for values that would fail later or in each request, and for more
    positional arguments than the name.
    """
    valid = [name for name in inspect.signature(init).parameters if name not in {"self", "name"}]

    @wraps(init)
    def checked(self: object, *args: Any, **options: Any) -> None:
        if len(args) > 1:
            raise TypeError(
                f"MCPServer takes only its name by position. Write MCPServer({args[0]!r}, instructions={args[1]!r})."
            )
        for option in options:
            if option in _OPTIONS_ELSEWHERE:
                raise TypeError(f"MCPServer has no option {option!r}. Use {_OPTIONS_ELSEWHERE[option]}.")
            if option in _NOT_NEEDED:
                raise TypeError(f"MCPServer has no option {option!r}. {_NOT_NEEDED[option]}")
            if option not in {"name", *valid}:
                raise TypeError(f"MCPServer has no option {option!r}. Valid options: {', '.join(valid)}.")
        for option, expected in _TYPES.items():
            _check_type(option, options.get(option), expected)
        _check_name(args[0] if args else options.get("name"))
        _check_auth(options.get("auth"))
        _check_tasks(options.get("tasks"))
        _check_middleware(options.get("middleware", ()))
        init(self, *args, **options)

    return cast("F", checked)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise TypeError(f'MCPServer needs a name, such as MCPServer("shop"); got {name!r:.60}.')


def _check_type(option: str, value: object, expected: type) -> None:
    if value is not None and not isinstance(value, expected):
        raise TypeError(f"{option} must be {expected.__name__}(...); got {type(value).__name__}.")


def _check_auth(auth: object) -> None:
    if isinstance(auth, type):
        raise TypeError(f"auth must be an authenticator, not a class. Write auth={auth.__name__}(...).")
    if auth is None or callable(auth):
        return
    from funcmcp._auth.policy import Auth  # noqa: PLC0415 - only servers with authentication need it

    if not isinstance(auth, Auth):
        type_name = type(auth).__name__  # The value may be a secret, which must not get into a log.
        raise TypeError(f"auth must be an authenticator, such as APIKeys({{...}}), or Auth(...); got {type_name}.")


def _check_tasks(tasks: object) -> None:
    if tasks is None or tasks == "memory":
        return
    if isinstance(tasks, type) or not hasattr(tasks, "bind"):
        name = getattr(tasks, "__name__", type(tasks).__name__)
        raise TypeError(f"tasks must be a store of tasks, such as SQLiteTasks('tasks.db'); got {name}.")


def _check_middleware(middleware: object) -> None:
    if not isinstance(middleware, Sequence):
        raise TypeError(f"middleware must be a list of async functions; got {type(middleware).__name__}.")
