"""Prints how servers treat dependencies: ``python -m tests.compat.dependency_cases`` needs FastMCP.

Each case is a dependency and what a function does with its value. It is called as a plain tool, an async tool, a
resource, a template and a prompt. An outcome has the answer, and the steps that the dependency has noted.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import io
import json
import logging
import re
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping  # noqa: TC003 - FastMCP evaluates annotations
from types import MappingProxyType
from typing import Any, NamedTuple

TENANT: contextvars.ContextVar[str] = contextvars.ContextVar("TENANT", default="nobody")
FEATURES = ("tool", "async_tool", "resource", "template", "prompt")


class Names(NamedTuple):
    """What a framework has."""

    server: Any
    depends: Any
    shared: Any
    call_argument: Any
    tool_error: Any


class Case(NamedTuple):
    """A dependency, and what the function does with its value.

    Attributes:
        mark: Returns the mark of the parameter. It gets the names of the framework, and the list of steps.
        body: Returns the text of the answer. It gets the value.
        calls: How often each feature is called.
    """

    mark: Callable[[Names, list[str]], Any]
    body: Callable[[Any], str] = str
    calls: int = 1


class Noting:
    """A context manager that notes how it is entered and left."""

    def __init__(self, steps: list[str], *, suppresses: bool = False) -> None:
        self.steps = steps
        self.suppresses = suppresses

    def __enter__(self) -> str:
        self.steps.append("enter")
        return "entered"

    def __exit__(self, kind: Any, *_: Any) -> bool:
        self.steps.append("exit" if kind is None else f"exit {kind.__name__}")
        return self.suppresses


class AsyncNoting:
    """An async context manager that does the same."""

    def __init__(self, steps: list[str]) -> None:
        self.steps = steps

    async def __aenter__(self) -> str:
        self.steps.append("aenter")
        return "entered"

    async def __aexit__(self, kind: Any, *_: Any) -> None:
        self.steps.append("aexit" if kind is None else f"aexit {kind.__name__}")


class BothNoting(Noting, AsyncNoting):
    """Both."""


class OnlyEntered:
    """Has no ``__exit__``."""

    def __enter__(self) -> str:
        return "entered"


class OnlyNamed:
    """Has the methods in its instances only."""

    def __init__(self) -> None:
        self.__enter__ = lambda: "entered"
        self.__exit__ = lambda *_: None


def fail(_: Any = None) -> str:
    raise ValueError("secret")


def type_of(value: Any) -> str:
    return type(value).__name__


def noting(steps: list[str], **options: Any) -> Any:
    """Return a factory of a generator function that contextlib decorates."""

    @contextlib.contextmanager
    def transaction() -> Iterator[str]:
        with Noting(steps, **options) as value:
            yield value

    return transaction


def async_noting(steps: list[str]) -> Any:
    @contextlib.asynccontextmanager
    async def transaction() -> Any:
        async with AsyncNoting(steps) as value:
            yield value

    return transaction


def generator() -> Iterator[str]:
    yield "yielded"


async def async_generator() -> Any:
    yield "yielded"


async def coroutine() -> str:
    return "awaited"


def raising(error: Any, *, at: str) -> Any:
    @contextlib.contextmanager
    def check() -> Iterator[str]:
        if at == "enter":
            raise error
        yield "checked"
        raise error

    return check


def in_async_function(value: Any) -> Any:
    async def factory() -> Any:
        return value

    return factory


def nested(names: Names, steps: list[str]) -> Any:
    def outer(inner: str = names.depends(noting(steps))) -> str:
        return f"outer({inner})"

    return names.depends(outer)


def nested_manager(names: Names, steps: list[str]) -> Any:
    @contextlib.contextmanager
    def outer(inner: str = names.depends(async_noting(steps))) -> Iterator[str]:
        with Noting(steps):
            yield f"outer({inner})"

    return names.depends(outer)


def nested_in_async(names: Names, steps: list[str]) -> Any:
    @contextlib.asynccontextmanager
    async def outer(inner: str = names.depends(noting(steps))) -> Any:
        async with AsyncNoting(steps):
            yield f"outer({inner})"

    return names.depends(outer)


def cached(names: Names, steps: list[str]) -> Any:
    factory = noting(steps)

    def pair(first: str = names.depends(factory), second: str = names.depends(factory)) -> str:
        return f"{first} {second}"

    return names.depends(pair)


def connection(names: Names, steps: list[str]) -> Any:
    class Connection(sqlite3.Connection):
        def __enter__(self) -> Any:
            steps.append("begin")
            return super().__enter__()

        def __exit__(self, kind: Any, *arguments: Any) -> Any:
            steps.append("end" if kind is None else "roll back")
            try:
                return super().__exit__(kind, *arguments)
            finally:
                self.close()

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(":memory:", factory=Connection, check_same_thread=False)

    return names.depends(connect)


def lock(names: Names, steps: list[str]) -> Any:
    held = threading.Lock()

    def get_lock() -> Any:
        steps.append(f"locked: {held.locked()}")
        return held

    def state(entered: bool = names.depends(get_lock)) -> str:
        return f"{entered} {held.locked()}"

    return names.depends(state)


def file(names: Names, steps: list[str]) -> Any:
    class File(io.StringIO):
        def close(self) -> None:
            steps.append("closed")
            super().close()

    return names.depends(lambda: File("text"))


def tenant(names: Names, steps: list[str]) -> Any:
    @contextlib.contextmanager
    def use() -> Iterator[None]:
        token = TENANT.set("ann")
        yield
        TENANT.reset(token)
        steps.append(TENANT.get())

    return names.depends(use)


def async_tenant(names: Names, steps: list[str]) -> Any:
    @contextlib.asynccontextmanager
    async def use() -> Any:
        TENANT.set("ann")
        yield
        steps.append("left")

    return names.depends(use)


def tenant_of_tenant(names: Names, steps: list[str]) -> Any:
    def use() -> None:
        TENANT.set("ann")

    async def seen(_: None = names.depends(use)) -> str:
        steps.append(TENANT.get())
        return TENANT.get()

    return names.depends(seen)


def check(names: Names, at: str, kind: str) -> Any:
    error = names.tool_error("forbidden") if kind == "ToolError" else PermissionError("secret")
    return names.depends(raising(error, at=at))


def shared(names: Names, steps: list[str]) -> Any:
    return names.shared(noting(steps))


def shared_of_async(names: Names, steps: list[str]) -> Any:
    return names.shared(async_noting(steps))


def argument(names: Names, reference: Any) -> Any:
    def account(owner: str = reference) -> str:
        return f"account of {owner}"

    return names.depends(account)


def bound(names: Names, value: Any) -> Any:
    def account(owner: str, greeting: str = "hello") -> str:
        return f"{greeting} {owner}"

    return names.depends(account, owner=value)


class Repository:
    def __init__(self, steps: list[str]) -> None:
        self.steps = steps

    def get(self) -> Any:
        return Noting(self.steps)

    def __call__(self) -> Any:
        return Noting(self.steps)


CASES: dict[str, Case] = {
    "function": Case(lambda names, _: names.depends(lambda: "value")),
    "function that returns None": Case(lambda names, _: names.depends(lambda: None)),
    "coroutine function": Case(lambda names, _: names.depends(coroutine)),
    "function that returns a coroutine": Case(lambda names, _: names.depends(lambda: coroutine())),  # noqa: PLW0108
    "generator": Case(lambda names, _: names.depends(generator), type_of),
    "async generator": Case(lambda names, _: names.depends(async_generator), type_of),
    "contextmanager": Case(lambda names, steps: names.depends(noting(steps))),
    "asynccontextmanager": Case(lambda names, steps: names.depends(async_noting(steps))),
    "class with __enter__": Case(lambda names, steps: names.depends(lambda: Noting(steps))),
    "class with __aenter__": Case(lambda names, steps: names.depends(lambda: AsyncNoting(steps))),
    "class with both": Case(lambda names, steps: names.depends(lambda: BothNoting(steps))),
    "class without __exit__": Case(lambda names, _: names.depends(OnlyEntered), type_of),
    "methods of the instance": Case(lambda names, _: names.depends(OnlyNamed), type_of),
    "class itself": Case(
        lambda names, steps: names.depends(
            type("Own", (Noting,), {"__init__": lambda self: Noting.__init__(self, steps)})
        )
    ),
    "__enter__ from an async function": Case(
        lambda names, steps: names.depends(in_async_function(Noting(steps))), type_of
    ),
    "__aenter__ from an async function": Case(
        lambda names, steps: names.depends(in_async_function(AsyncNoting(steps))), type_of
    ),
    "partial": Case(lambda names, steps: names.depends(functools.partial(noting(steps)))),
    "bound method": Case(lambda names, steps: names.depends(Repository(steps).get)),
    "callable object": Case(lambda names, steps: names.depends(Repository(steps))),
    "closing": Case(
        lambda names, steps: names.depends(lambda: contextlib.closing(io.StringIO("text"))), lambda value: value.read()
    ),
    "nullcontext": Case(lambda names, steps: names.depends(lambda: contextlib.nullcontext("null"))),
    "file": Case(file, lambda value: value.read()),
    "connection": Case(connection, lambda value: str(value.execute("SELECT 42").fetchone()[0]), 2),
    "connection and a failure": Case(connection, fail),
    "lock": Case(lock, calls=2),
    "nested": Case(nested),
    "nested managers": Case(nested_manager),
    "nested in an async manager": Case(nested_in_async),
    "nested and a failure": Case(nested_in_async, fail),
    "cached": Case(cached),
    "cached manager instances": Case(lambda names, steps: names.depends(noting(steps)), calls=2),
    "context variable": Case(tenant, lambda _: TENANT.get()),
    "context variable of an async manager": Case(async_tenant, lambda _: TENANT.get()),
    "context variable of a plain function": Case(tenant_of_tenant),
    "Shared": Case(shared, calls=2),
    "Shared async": Case(shared_of_async, calls=2),
    "Shared failing": Case(lambda names, _: names.shared(raising(PermissionError("secret"), at="enter"))),
    "CallArgument": Case(lambda names, _: argument(names, names.call_argument("item"))),
    "CallArgument that is optional": Case(lambda names, _: argument(names, names.call_argument("nothing", True))),
    "argument of a dependency": Case(lambda names, _: bound(names, "ann")),
    "CallArgument of a dependency": Case(lambda names, _: bound(names, names.call_argument("item"))),
    "dependency of a dependency's argument": Case(lambda names, steps: bound(names, names.depends(noting(steps)))),
    "ToolError in the function": Case(
        lambda names, _: names.depends(lambda: raising(names.tool_error("forbidden"), at="enter")().__enter__())
    ),
    "ValueError in the function": Case(lambda names, _: names.depends(fail)),
    "ToolError at enter": Case(lambda names, _: check(names, "enter", "ToolError")),
    "PermissionError at enter": Case(lambda names, _: check(names, "enter", "PermissionError")),
    "ToolError at exit": Case(lambda names, _: check(names, "exit", "ToolError")),
    "PermissionError at exit": Case(lambda names, _: check(names, "exit", "PermissionError")),
    "failure in a contextmanager": Case(lambda names, steps: names.depends(noting(steps)), fail),
    "failure in an asynccontextmanager": Case(lambda names, steps: names.depends(async_noting(steps)), fail),
    "suppressed failure": Case(lambda names, steps: names.depends(noting(steps, suppresses=True)), fail),
}


def register(names: Names, case: Case, steps: list[str]) -> None:
    """Register the features of a case."""
    mark, body = case.mark(names, steps), case.body
    mcp = names.server

    @mcp.tool  # type: ignore[untyped-decorator] # of either framework
    def tool(item: str = "tea", value: Any = mark) -> str:
        return body(value)

    @mcp.tool  # type: ignore[untyped-decorator] # of either framework
    async def async_tool(item: str = "tea", value: Any = mark) -> str:
        return body(value)

    @mcp.resource("shop://resource")  # type: ignore[untyped-decorator] # of either framework
    def resource(value: Any = mark, item: str = names.depends(lambda: "tea")) -> str:
        return body(value)

    @mcp.resource("shop://items/{item}")  # type: ignore[untyped-decorator] # of either framework
    def template(item: str, value: Any = mark) -> str:
        return body(value)

    @mcp.prompt  # type: ignore[untyped-decorator] # of either framework
    def prompt(item: str = "tea", value: Any = mark) -> str:
        return body(value)


async def answer(client: Any, feature: str) -> str:
    """Return the answer of a feature as a text."""
    try:
        if feature in {"tool", "async_tool"}:
            result = await client.call_tool(feature, {}, raise_on_error=False)
            texts = [block.text for block in result.content]
            return (
                f"{'error' if result.is_error else 'answer'}: {re.sub('^Error calling tool .*?: ', '', ''.join(texts))}"
            )
        if feature == "prompt":
            (message,) = (await client.get_prompt("prompt", {})).messages
            return f"answer: {message.content.text}"
        uri = "shop://resource" if feature == "resource" else "shop://items/tea"
        contents = await client.read_resource(uri)
        return f"answer: {getattr(contents, 'contents', contents)[0].text}"
    except Exception as error:  # noqa: BLE001 - each framework has its own
        return f"error: {re.sub('^(Error|No) .*?: ', '', str(error).splitlines()[0])}"


async def outcomes(
    client_class: Any, names_of: Callable[[], Names], cases: Mapping[str, Case] = MappingProxyType(CASES)
) -> dict[str, dict[str, Any]]:
    """Return the answers of each feature and the steps during its calls, by case."""
    results: dict[str, dict[str, Any]] = {}
    for name, case in cases.items():
        names, steps = names_of(), list[str]()
        register(names, case, steps)
        outcome: dict[str, Any] = {}
        async with client_class(names.server) as client:
            for feature in FEATURES:
                answers = [await answer(client, feature) for _ in range(case.calls)]
                outcome[feature] = {"answers": answers, "steps": [*steps]}
                steps.clear()
        results[name] = {**outcome, "end": steps}
    return results


def originals() -> Names:
    from fastmcp import FastMCP
    from fastmcp.dependencies import CallArgument, Depends, Shared
    from fastmcp.exceptions import ToolError

    return Names(FastMCP("a"), Depends, Shared, CallArgument, ToolError)


def compat() -> Names:
    from funcmcp.compat import CallArgument, Depends, FastMCP, Shared, ToolError

    return Names(FastMCP("a"), Depends, Shared, CallArgument, ToolError)


if __name__ == "__main__":
    from fastmcp import Client

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    print(json.dumps(asyncio.run(outcomes(Client, originals))))
