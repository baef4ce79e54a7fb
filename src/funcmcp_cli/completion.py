"""Words that a shell offers at the Tab key: names of tools, prompts and arguments, and URIs, of a server in a file.

A server at a URL, a command and a function app have none: to ask them would take longer than a person waits, and may
have effects. A file is imported, as `funcmcp inspect` does. What its code prints is dropped, and a file that cannot be
imported has no words.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from funcmcp_cli.connect import is_command
from funcmcp_cli.failure import Failure
from funcmcp_cli.json_values import as_list, as_object, first_line
from funcmcp_cli.targets import function_app_in, load

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from funcmcp import MCPServer

Words: TypeAlias = list[tuple[str, str]]
"""Words, each with a sentence about it."""


def tools(target: str, incomplete: str) -> Words:
    """Return the names of the tools that begin with what was typed."""
    return _named(_listed(target, "list_tools"), "name", incomplete)


def prompts(target: str, incomplete: str) -> Words:
    """Return the names of the prompts that begin with what was typed."""
    return _named(_listed(target, "list_prompts"), "name", incomplete)


def uris(target: str, incomplete: str) -> Words:
    """Return the URIs of the resources that begin with what was typed."""
    return _named(_listed(target, "list_resources"), "uri", incomplete)


def tool_arguments(target: str, name: str, incomplete: str) -> Words:
    """Return ``key=`` for the arguments of a tool; after the equals sign, the values that its schema lists."""
    for tool in _listed(target, "list_tools"):
        if tool.get("name") == name:
            properties = as_object(as_object(tool.get("inputSchema")).get("properties"))
            return _beginning_with(incomplete, _pairs(properties, incomplete))
    return []


def prompt_arguments(target: str, name: str, incomplete: str) -> Words:
    """Return ``key=`` for the arguments of a prompt."""
    for prompt in _listed(target, "list_prompts"):
        if prompt.get("name") == name:
            properties = {str(argument.get("name")): argument for argument in as_list(prompt.get("arguments"))}
            return _beginning_with(incomplete, _pairs(properties, incomplete))
    return []


def _listed(target: str, method: Literal["list_tools", "list_prompts", "list_resources"]) -> Sequence[Any]:
    """Return the definitions that a method of the server in a file lists; none if there is no server."""
    server = _server(target)
    return [] if server is None else asyncio.run(getattr(server, method)())


def _server(target: str) -> MCPServer | None:
    """Return the server in a file; None if there is none, or if it cannot be imported."""
    try:
        if "://" in target or is_command(target) or function_app_in(target) is not None:
            return None
        with _silence():
            return load(target)
    except Failure:
        return None


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Drop what is written to stdout and stderr, also by C libraries: the shell reads stdout."""
    saved = os.dup(1), os.dup(2)
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 1)
        os.dup2(nothing, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        for descriptor in (*saved, nothing):
            os.close(descriptor)


def _named(features: Iterable[Any], key: str, incomplete: str) -> Words:
    candidates = [(str(feature.get(key)), first_line(feature)) for feature in features]
    return _beginning_with(incomplete, candidates)


def _pairs(properties: Mapping[str, Any], incomplete: str) -> Words:
    key, equals, _ = incomplete.partition("=")
    if not equals:
        return [(f"{name}=", first_line(as_object(schema))) for name, schema in properties.items()]
    schema = as_object(properties.get(key))
    if schema.get("type") == "boolean":
        return [(f"{key}=true", ""), (f"{key}=false", "")]
    return [(f"{key}={value}", "") for value in as_list(schema.get("enum")) if isinstance(value, str | int)]


def _beginning_with(incomplete: str, candidates: Words) -> Words:
    return [(word, text) for word, text in candidates if word.startswith(incomplete)]
