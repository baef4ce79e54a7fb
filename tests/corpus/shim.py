"""Stands in for the FastMCP classes: registers a server's functions with a funcmcp `MCPServer`.

Test code for the corpus, not a compatibility layer. `install` puts `Recorder` and `Context` into the modules from which
servers import `FastMCP`, `MCPServer` and `Context`. A layer that offers these names itself replaces this module.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from types import SimpleNamespace, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from funcmcp import MCPServer, PromptContext, ResourceContext, ToolContext

_SERVER_MODULES = (
    "fastmcp",
    "fastmcp.server",
    "fastmcp.server.server",
    "mcp.server",
    "mcp.server.fastmcp",
    "mcp.server.fastmcp.server",
    "mcp.server.mcpserver",
    "mcp.server.mcpserver.server",
)
_CONTEXT_MODULES = (*_SERVER_MODULES, "fastmcp.server.context", "mcp.server.mcpserver.context")
HINTS = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
}
_NO_EQUIVALENT = frozenset({"add_middleware", "add_transform", "completion", "custom_route", "middleware"})
"""Attributes that funcmcp has no equivalent for, or none that a server of the corpus needs: they do nothing here."""


def install() -> None:
    """Replace the server and context classes in the modules that are installed."""
    for name in _CONTEXT_MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        if name in _SERVER_MODULES:
            for recorder in (Recorder, MCPServerRecorder):
                if isinstance(getattr(module, recorder.replaces, None), type):
                    setattr(module, recorder.replaces, recorder)
        if isinstance(getattr(module, "Context", None), type):
            module.Context = Context  # type: ignore[attr-defined]  # modules have any attribute


class Context:
    """The context that a function of the server expects, over funcmcp's own."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __class_getitem__(cls, _: Any) -> type:
        return cls

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        await self._inner.progress(progress, total, message)

    async def log(self, *arguments: Any, level: str = "info", **_: Any) -> None:
        """Send the last argument: some versions take the level first, others by name."""
        await self._inner.log(arguments[0] if len(arguments) > 1 else level, arguments[-1])

    async def debug(self, message: str, **_: Any) -> None:
        await self._inner.log("debug", message)

    async def info(self, message: str, **_: Any) -> None:
        await self._inner.log("info", message)

    async def warning(self, message: str, **_: Any) -> None:
        await self._inner.log("warning", message)

    async def error(self, message: str, **_: Any) -> None:
        await self._inner.log("error", message)


class Recorder:
    """Takes the decorators of FastMCP, and registers each function with funcmcp.

    Attributes:
        replaces: The name of the class in whose place it is.
    """

    replaces = "FastMCP"

    def __init__(self, name: str | None = None, instructions: str | None = None, **options: Any) -> None:
        self.name = name or "server"
        self.instructions = instructions
        self.settings = SimpleNamespace()
        self.unused = {option for option in ("lifespan", "middleware") if options.get(option)}
        """What the server uses and this module leaves out."""
        self.refused: dict[str, str] = {}
        """Error of funcmcp for each feature that it did not register."""
        self._features: list[tuple[str, Any, str | None, dict[str, Any]]] = []
        self._mounted: list[tuple[str, Recorder]] = []
        self._tool_manager = SimpleNamespace(list_tools=list)

    def __getattr__(self, name: str) -> Any:
        if name not in _NO_EQUIVALENT:
            raise AttributeError(name)
        self.unused.add(name)
        if name == "middleware":
            return []
        return lambda *_, **__: lambda function: function

    def tool(self, name_or_function: Any = None, /, **options: Any) -> Any:
        return self._decorator("tool", name_or_function, options)

    def prompt(self, name_or_function: Any = None, /, **options: Any) -> Any:
        return self._decorator("prompt", name_or_function, options)

    def resource(self, uri: str, **options: Any) -> Any:
        def register(function: Any) -> Any:
            self._features.append(("resource", function, uri, options))
            return function

        return register

    def add_tool(self, tool: Any, name: str | None = None, **options: Any) -> Any:
        return self._add("tool", tool, name, options)

    def add_prompt(self, prompt: Any) -> Any:
        return self._add("prompt", prompt, None, {})

    def add_resource(self, resource: Any) -> Any:
        text = getattr(resource, "text", None)
        function = getattr(resource, "fn", None) or (lambda: text)
        options = {"name": resource.name, "description": resource.description, "mime_type": resource.mime_type}
        self._features.append(("resource", function, str(resource.uri), options))
        return resource

    def mount(self, server: Any, prefix: Any = None, *, namespace: str | None = None, **_: Any) -> None:
        """Add the features of another recorder under a prefix; old versions take the prefix first."""
        if not isinstance(server, Recorder):
            server, prefix = prefix, server
        self._mounted.append((prefix or namespace or "", server))

    async def import_server(self, server: Any, prefix: Any = None, **_: Any) -> None:
        self.mount(server, prefix)

    async def list_tools(self) -> list[Any]:
        return [SimpleNamespace(name=options.get("name") or name) for name, _, options in self._of("tool")]

    def run(self, *_: Any, **__: Any) -> None:
        """Do nothing: the corpus calls the server in memory."""

    async def run_async(self, *_: Any, **__: Any) -> None:
        """Do nothing."""

    run_stdio_async = run_http_async = run_streamable_http_async = run_sse_async = run_async

    def shown_errors(self) -> Any:
        """Return funcmcp's option for the errors whose text the library shows to clients: all."""
        return True

    def funcmcp_server(self) -> MCPServer:
        """Return a new funcmcp server with everything that was registered."""
        server = MCPServer(self.name, instructions=self.instructions or None, show_errors=self.shown_errors())
        server.lax = True
        for kind in ("tool", "prompt", "resource"):
            for name, function, options in self._of(kind):
                register = {"tool": _register_tool, "prompt": _register_prompt, "resource": _register_resource}[kind]
                try:
                    register(server, name, function, options)
                except Exception as error:  # noqa: BLE001 - the report shows it, and the feature is missing
                    self.refused[f"{kind} {name}"] = f"{type(error).__name__}: {error}"
        return server

    def _decorator(self, kind: str, name: Any, options: dict[str, Any]) -> Any:
        if callable(name) or hasattr(name, "fn"):
            return self._add(kind, name, None, options)
        return lambda function: self._add(kind, function, name or options.get("name"), options)

    def _add(self, kind: str, function: Any, name: str | None, options: dict[str, Any]) -> Any:
        if hasattr(function, "fn"):  # an object of FastMCP that was made of a function
            options = {"name": function.name, "description": function.description, **options}
        if options.get("enabled", True) is not False:
            self._features.append((kind, getattr(function, "fn", function), name, options))
        return function

    def _of(self, kind: str) -> list[tuple[str, Any, dict[str, Any]]]:
        """Return name or URI, function and options of each feature of a kind, those of mounted servers included."""
        features = [
            (name or options.get("name") or function.__name__, function, options)
            for its_kind, function, name, options in self._features
            if its_kind == kind
        ]
        for prefix, server in self._mounted:
            for name, function, options in server._of(kind):
                mounted = _with_prefix(kind, prefix, name)
                features.append((mounted, function, options if kind == "resource" else {**options, "name": mounted}))
        return features


class MCPServerRecorder(Recorder):
    """The same for `mcp.server.MCPServer` of mcp 2, which shows the text of its own ToolError alone."""

    replaces = "MCPServer"

    def shown_errors(self) -> Any:
        return importlib.import_module("mcp.server.mcpserver.exceptions").ToolError


def _with_prefix(kind: str, prefix: str, name: str) -> str:
    if not prefix:
        return name
    if kind != "resource":
        return f"{prefix}_{name}"
    scheme, _, path = name.partition("://")
    return f"{scheme}://{prefix}/{path}"


def _register_tool(server: MCPServer, name: str, function: Any, options: dict[str, Any]) -> None:
    chosen = _chosen(options, "title", "description", "output_schema")
    annotations = _plain(options.get("annotations"))
    chosen |= {option: annotations[hint] for hint, option in HINTS.items() if annotations.get(hint) is not None}
    if annotations.get("title"):
        chosen.setdefault("title", annotations["title"])
    if options.get("meta"):
        chosen["meta"] = options["meta"]
    function = adapted(function, ToolContext, without=options.get("exclude_args") or ())
    if options.get("structured_output") is False:
        function = unstructured(function)
    server.tool(name, **chosen)(function)


def _register_prompt(server: MCPServer, name: str, function: Any, options: dict[str, Any]) -> None:
    server.prompt(name, **_chosen(options, "title", "description"))(adapted(function, PromptContext))


def _register_resource(server: MCPServer, uri: str, function: Any, options: dict[str, Any]) -> None:
    chosen = _chosen(options, "name", "title", "description", "mime_type")
    server.resource(uri, **chosen)(adapted(function, ResourceContext))


def _chosen(options: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names if options.get(name) is not None}


def _plain(model: Any) -> dict[str, Any]:
    if model is None or isinstance(model, dict):
        return model or {}
    plain: dict[str, Any] = model.model_dump(by_alias=True, exclude_none=True)
    return plain


def adapted(function: Any, context: type, without: Any = ()) -> Any:
    """Return a function that takes funcmcp's context in place of `Context`; the same one if it takes none.

    Args:
        function: a function of a server of the corpus.
        context: the class of funcmcp's context.
        without: parameters that clients don't fill; their defaults hold.
    """
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
    except (NameError, TypeError, ValueError):
        return function
    names = [name for name in parameters if _is_context(hints.get(name))]
    hidden = {name for name in parameters if name in without or _is_dependency(parameters[name].default)}
    if not names and not hidden:
        return function

    def arguments(received: dict[str, Any]) -> dict[str, Any]:
        return {name: Context(value) if name in names else value for name, value in received.items()}

    @functools.wraps(function)
    def plain(**received: Any) -> Any:
        return function(**arguments(received))

    @functools.wraps(function)
    async def asynchronous(**received: Any) -> Any:
        return await function(**arguments(received))

    wrapper: Any = asynchronous if inspect.iscoroutinefunction(function) else plain
    del wrapper.__wrapped__
    wrapper.__annotations__ = {name: hint for name, hint in hints.items() if name not in hidden}
    wrapper.__annotations__ |= dict.fromkeys(names, context)
    wrapper.__signature__ = inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if name in names else parameter.default,
                annotation=wrapper.__annotations__.get(name, inspect.Parameter.empty),
            )
            for name, parameter in parameters.items()
            if name not in hidden
        ]
    )
    return wrapper


def unstructured(function: Any) -> Any:
    """Return a function without a return annotation, so that its results have no schema."""

    @functools.wraps(function)
    def plain(*arguments: Any, **received: Any) -> Any:
        return function(*arguments, **received)

    @functools.wraps(function)
    async def asynchronous(*arguments: Any, **received: Any) -> Any:
        return await function(*arguments, **received)

    wrapper: Any = asynchronous if inspect.iscoroutinefunction(function) else plain
    hints = get_type_hints(function, include_extras=True)
    wrapper.__annotations__ = {name: hint for name, hint in hints.items() if name != "return"}
    wrapper.__signature__ = inspect.signature(function).replace(return_annotation=inspect.Signature.empty)
    return wrapper


def _is_context(hint: Any) -> bool:
    if get_origin(hint) in {Union, UnionType}:
        return any(_is_context(member) for member in get_args(hint))
    return hint is Context


def _is_dependency(default: Any) -> bool:
    return type(default).__module__.startswith(("fastmcp.", "uncalled_for"))
