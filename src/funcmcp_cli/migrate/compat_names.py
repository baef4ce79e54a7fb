"""What becomes of names of FastMCP and of the official SDK: the same in `funcmcp.compat`, different, or missing.

How it works: the names of the originals are data (`original_names.json`, made by scripts/original_names.py). What
`funcmcp.compat` has is read from its classes and functions. Where it takes any keyword argument, the argument is passed
to it: it then says that the argument does not exist, or that it changes nothing. So a name that is added to
`funcmcp.compat` needs no change here.
"""

from __future__ import annotations

import dis
import inspect
import json
import re
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from funcmcp import compat
from funcmcp._compat.module_trees import INSTEAD_OF_MODULES
from funcmcp._serving.composition import runtime_of
from funcmcp_cli.migrate import sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_REFUSAL = re.compile(r"[Uu]nknown option|no option|does not support|unexpected keyword|ctx\.sample of .* has no")
_IMPERATIVE = re.compile(r"(Add|Ask|Call|Choose|Leave|Pass|Register|Return|Run|Use|Write)\b")
_NO_EFFECT = "it changes nothing here"


class Verdict(NamedTuple):
    """What becomes of a name.

    Attributes:
        level: "same", "differs" or "missing".
        text: How it differs, or what to use; "" for the same.
    """

    level: Literal["same", "differs", "missing"]
    text: str = ""


SAME = Verdict("same")
_CLIENTS = frozenset({"fastmcp.client", "mcp.client"})
"""The packages of the originals' clients, with which tests call a server."""


@cache
def original_names() -> dict[str, Any]:
    """Return the names of the originals: homes of names by module, and parameters of members by class."""
    text = Path(__file__).with_name("original_names.json").read_text(encoding="utf-8")
    names: dict[str, Any] = json.loads(text)
    return names


def is_types(module: str) -> bool:
    """Return whether a module has the types of the official SDK."""
    return module in {"mcp.types", "mcp_types"} or module.startswith(("mcp.types.", "mcp_types."))


def is_original(module: str) -> bool:
    """Return whether a module is one of FastMCP or of the official SDK."""
    return module.partition(".")[0] in {"fastmcp", "mcp", "mcp_types"}


def home_of(module: str, name: str) -> str:
    """Return the module that defines a name of a module of the originals; the module itself if that is not known."""
    home = original_names()["modules"].get(module, {}).get(name)
    if home and is_original(home):
        return str(home)
    return "mcp.types" if module == "mcp" else module  # also for aliases of types, whose home is `typing`


@cache
def _names_of_types() -> frozenset[str]:
    """Return the names of `funcmcp.compat` that only modules of types have, so that they mean these types."""
    homes: dict[str, set[bool]] = {}
    for module, names in original_names()["modules"].items():
        for name, home in names.items():
            homes.setdefault(name, set()).add(is_types(home or module))
    return frozenset(name for name in compat.__all__ if homes.get(name) == {True})


@cache
def import_verdict(module: str, name: str) -> Verdict:
    """Return what becomes of ``from module import name``."""
    verdict = name_verdict(module, name)
    is_new = verdict.level == "missing" and not is_submodule(f"{module}.{name}")
    return SAME if is_new and tree_has(module, name) else verdict


@cache
def tree_has(module: str, name: str) -> bool:
    """Return whether the module of `funcmcp.compat` that stands for one of the originals has a name of its own."""
    try:
        value = getattr(import_module(f"funcmcp.compat.{module}"), name)
    except (AttributeError, ImportError):
        return False
    return not is_original(value.__name__ if inspect.ismodule(value) else str(getattr(value, "__module__", "")))


def is_submodule(name: str) -> bool:
    """Return whether a name is that of a module of the originals, and not also that of a class or a function."""
    modules = original_names()["modules"]
    parent, _, last = name.rpartition(".")
    return name in modules and last not in modules.get(parent, {})


@cache
def name_verdict(module: str, name: str) -> Verdict:
    """Return what becomes of a name of a module if it is taken from `funcmcp.compat` itself."""
    home = home_of(module, name)
    if is_submodule(f"{module}.{name}"):
        return _submodule_verdict(f"{module}.{name}")
    is_type = is_types(home)
    if name in (_names_of_types() if is_type else compat.__all__) and not _is_below(home, sentences.OTHER_MEANINGS):
        return SAME
    if is_client(module, name) or _is_below(home, _CLIENTS):
        return Verdict("differs", f"it is of the client of {module.partition('.')[0]}: keep the package installed")
    if is_type or (name in sentences.STAYING and home.startswith("mcp.")):
        return Verdict("differs", "keep the package mcp installed")
    return Verdict("missing", _advice_for_import(module, name))


def is_client(module: str, name: str) -> bool:
    """Return whether a name is that of a client that connects to servers of `funcmcp.compat`, too."""
    clients = {"fastmcp": {"Client"}, "mcp": {"Client"}, "fastmcp.client.transports": {"FastMCPTransport"}}
    in_client = module in {"fastmcp.client", "fastmcp.client.client", "mcp.client", "mcp.client.client"}
    return name in clients.get(module, {"Client"} if in_client else set())


def target_of(module: str, name: str) -> str | None:
    """Return the module that has a name in place of one of the originals; None if the import stays."""
    if is_client(module, name):
        return f"funcmcp.compat.{module}"
    if import_verdict(module, name).level != "same":
        return None
    return "funcmcp.compat" if name_verdict(module, name).level == "same" else f"funcmcp.compat.{module}"


def _submodule_verdict(module: str) -> Verdict:
    if is_types(module):
        return Verdict("differs", "keep the package mcp installed")
    return Verdict("missing", "import the names from funcmcp.compat")


def _is_below(module: str, parents: frozenset[str]) -> bool:
    return any(module == parent or module.startswith(f"{parent}.") for parent in parents)


def _advice_for_import(module: str, name: str) -> str:
    try:
        getattr(compat, name)
    except ImportError as error:  # compat knows the name, and what to use
        return sentence(str(error).partition(f"no {name}. ")[2])
    except AttributeError:
        pass
    if name in sentences.WHAT_TO_USE:
        return sentences.WHAT_TO_USE[name]
    return advice_for_module(module) or advice_for_module(home_of(module, name)) or "rewrite its uses by hand"


def advice_for_module(module: str) -> str:
    """Return what to use for a module that `funcmcp.compat` has no names for; "" if nothing is known."""
    while module:
        if module in INSTEAD_OF_MODULES:
            return INSTEAD_OF_MODULES[module]
        module = module.rpartition(".")[0]
    return ""


def sentence(text: str) -> str:
    """Return a sentence of an error as the rest of a line: without a full stop, and without a capital "Use"."""
    text = text.removesuffix(".")
    return text[:1].lower() + text[1:] if _IMPERATIVE.match(text) else text


# Members of classes


def class_of(name: str) -> Any:
    """Return the class of `funcmcp.compat` for an original one.

    Args:
        name: The name of the class. ``"ServerSession"`` is that of a context, and ``"Tool"`` one of `funcmcp.compat`;
            ``"FastMCP.get_tool"`` is what the method returns.
    """
    if name in compat.__all__:
        return getattr(compat, name)
    owner, _, member = ("Context.session" if name == "ServerSession" else name).partition(".")
    attribute = inspect.getattr_static(getattr(compat, owner), member)
    function: Any = attribute.fget if isinstance(attribute, property) else attribute
    annotation = str(inspect.get_annotations(function).get("return")).removesuffix(" | None")
    return getattr(sys.modules[function.__module__], annotation, None)


@cache
def _instance_attributes(cls: type) -> frozenset[str]:
    """Return the attributes that a class and its bases declare, or set in their methods."""
    names: set[str] = set()
    for base in cls.__mro__:
        names.update(inspect.get_annotations(base), vars(base).get("__slots__", ()))
        for function in filter(inspect.isfunction, vars(base).values()):
            names.update(_attributes_set_in(function))
    return frozenset(names)


def _attributes_set_in(function: Any) -> Iterator[str]:
    previous: Any = None
    for instruction in dis.get_instructions(function):
        if instruction.opname == "STORE_ATTR" and previous in {"self", ("self",)}:
            yield str(instruction.argval)
        previous = instruction.argval[-1:] if isinstance(instruction.argval, tuple) else instruction.argval


@cache
def member_verdict(cls: str, member: str) -> Verdict | None:
    """Return what becomes of an attribute or a method of an object; None if neither side has it.

    Args:
        cls: The name of the object's class, as for `class_of`.
        member: The name of the attribute.
    """
    compat_class = class_of(cls)
    original = _original_class(cls)
    if compat_class is None or original not in original_names()["classes"]:
        return None
    if hasattr(compat_class, member) or member in _instance_attributes(compat_class):
        text = _text_of(sentences.DIFFERENCES, original, member)
        return Verdict("differs", text) if text else SAME
    if member not in original_names()["classes"][original]:
        return None
    advice = _advice_of(compat_class, member) or _text_of(sentences.WHAT_TO_USE, original, member)
    if not advice and member in (original_names()["classes"][original].get("__init__") or ()):
        advice = f"it can't be read afterwards; keep what is passed as {member}= in a variable"
    kind = "private part" if _is_private(member) else "attribute"
    return Verdict("missing", advice or f"{original} of funcmcp.compat has no such {kind}; rewrite it by hand")


def _original_class(cls: str) -> str:
    return {"FastMCP.get_tool": "Tool"}.get(cls, cls)


def _is_private(member: str) -> bool:
    return member.startswith("_") and not member.startswith("__")


def _text_of(texts: dict[str, str], cls: str, member: str) -> str:
    """Return the text of a member; that of `FastMCP` for `MCPServer`, which has its members."""
    text = texts.get(f"{cls}.{member}", "")
    return texts.get(f"FastMCP.{member}", "") if not text and cls == "MCPServer" else text


def _advice_of(cls: type, member: str) -> str:
    """Return what the error about a missing attribute says."""
    try:
        getattr(object.__new__(cls), member)
    except Exception as error:  # noqa: BLE001 - a class without advice may fail in any way
        return sentence(str(error).partition(f"{member!r}. ")[2])
    return ""


def can_be_set(cls: str, member: str) -> Verdict:
    """Return what becomes of an assignment to an attribute of an object."""
    if _is_private(member):
        return SAME
    try:
        attribute = inspect.getattr_static(class_of(cls), member)
    except AttributeError:
        return SAME
    if isinstance(attribute, property) and attribute.fset is None:
        return Verdict("missing", f"it can't be set; pass {member}= to the constructor")
    return SAME


@cache
def _refuses_override(cls: str, member: str) -> bool:
    """Return whether a class of `funcmcp.compat` raises a TypeError for a subclass with this method."""
    try:
        type("Probe", (class_of(cls),), {member: _function})
    except TypeError:
        return True
    return False


def override_verdict(cls: str, member: str) -> Verdict | None:
    """Return what becomes of a method that a subclass has; None if it is one of its own."""
    if _refuses_override(cls, member):
        hook = "on_call_tool, on_list_tools and so on"
        return Verdict("missing", f"the class raises a TypeError: use add_middleware with a Middleware that has {hook}")
    text = _text_of(sentences.OVERRIDES, cls, member)
    if text:
        return Verdict("differs", text)
    verdict = member_verdict(cls, member)
    is_public = member in original_names()["classes"].get(cls, {})
    if verdict is None or verdict.level != "missing" or not is_public:
        return None
    return Verdict("missing", f"funcmcp.compat never calls it; {verdict.text}")


@cache
def uri_verdict(uri: str) -> Verdict:
    """Return what becomes of the URI, or the template of URIs, of a resource."""
    if ":" not in uri:
        return Verdict("missing", sentences.WITHOUT_SCHEME)
    try:
        compat.FastMCP("probe").resource(uri)(_function)
    except Exception as error:  # noqa: BLE001 - the function lacks the variables, too; only a refusal of the URI counts
        if "not supported" in str(error):
            return Verdict("missing", str(error).removesuffix("."))
    return SAME


# Keyword arguments


@cache
def option_verdict(owner: str, option: str) -> Verdict:
    """Return what becomes of a keyword argument.

    Args:
        owner: A class or function of `funcmcp.compat`, or a method such as ``"FastMCP.tool"``.
        option: The name of the argument.
    """
    cls, _, method = owner.partition(".")
    refused = _text_of(sentences.REFUSED_OPTIONS, cls, f"{method}({option}=)")
    if refused:
        return Verdict("missing", refused)
    function = inspect.getattr_static(class_of(cls), method or "__init__") if method else getattr(compat, cls)
    if isinstance(function, classmethod | staticmethod):
        function = function.__func__
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return SAME
    kinds = {parameter.kind for parameter in parameters.values()}
    if option in parameters:
        return SAME
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        return Verdict("missing", f"{owner} of funcmcp.compat has no such option")
    return _probed(owner, option)


def _probed(owner: str, option: str) -> Verdict:
    """Return what `funcmcp.compat` says about a keyword argument that is passed to it."""
    cls, _, method = owner.partition(".")
    is_server = cls in {"FastMCP", "MCPServer"}
    probe = _PROBES.get(method or ("__init__" if is_server else cls))
    if probe is None:
        return SAME
    server = getattr(compat, cls if is_server else "FastMCP")("probe")
    try:
        probed = probe(server, {option: _Value()})
    except Exception as error:  # noqa: BLE001 - the value may fail in any way; only a refusal of the name counts
        if _REFUSAL.search(str(error)):
            return Verdict("missing", _advice_in(str(error)))
        probed = None
    notices = runtime_of(probed or server).notices
    is_ignored = any(option in {*names, *text.split()} for text, names in notices.items())
    return Verdict("differs", _NO_EFFECT) if is_ignored else SAME


class _Value:
    """A value that every check of a type refuses, and that is a token verifier."""

    async def verify_token(self, _: str) -> None:
        """Accept no token."""


def _advice_in(error: str) -> str:
    """Return the sentence of an error that says what to do, or the error without the list of valid options."""
    first, _, advice = error.partition(". ")
    if advice.startswith("Valid options") or not advice:
        return sentence(first)
    return sentence(advice)


def _function() -> None:
    """Do nothing."""


def _constructed(server: Any, options: dict[str, Any]) -> Any:
    return type(server)("probe", **options)


def _sampled(_: Any, options: dict[str, Any]) -> None:
    """Call ``ctx.sample`` without a request, until it would ask the client."""
    context: Any = object.__new__(compat.Context)
    coroutine = context.sample("probe", **options)
    try:
        coroutine.send(None)
    finally:
        coroutine.close()


_PROBES: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "__init__": _constructed,
    "create_proxy": _constructed,
    "as_proxy": _constructed,
    "from_openapi": _constructed,
    "from_fastapi": _constructed,
    "tool": lambda server, options: server.tool(**options)(_function) and None,
    "add_tool": lambda server, options: server.add_tool(_function, **options) and None,
    "prompt": lambda server, options: server.prompt(**options)(_function) and None,
    "add_prompt": lambda server, options: server.add_prompt(_function, **options) and None,
    "resource": lambda server, options: server.resource("probe://probe", **options)(_function) and None,
    "add_resource_fn": lambda server, options: server.add_resource_fn(_function, "probe://probe", **options),
    "mount": lambda server, options: server.mount(type(server)("other"), **options),
    "import_server": lambda server, options: server.mount(type(server)("other"), **options),
    "enable": lambda server, options: server.enable(**options) and None,
    "disable": lambda server, options: server.disable(**options) and None,
    "sample": _sampled,
    **dict.fromkeys(
        ("run", "run_async", "run_http_async", "run_stdio_async", "run_sse_async", "run_streamable_http_async",
         "http_app", "streamable_http_app", "sse_app"),
        lambda server, options: server.http_app(**options) and None,
    ),
}  # fmt: skip
"""By method that takes any keyword argument, how it is called with one."""

ACCEPTS_ANYTHING = frozenset(
    {
        *("list_tools", "list_prompts", "list_resources", "list_resource_templates"),
        *("call_tool", "get_prompt", "read_resource", "render_prompt"),
        *("disable_components", "enable_components"),
        *("elicit", "debug", "info", "warning", "error", "log"),
    }
)
"""Methods that take any keyword argument, and refuse or ignore none that the originals have."""


def probed_methods() -> frozenset[str]:
    """Return the methods that are called to see what they say about a keyword argument."""
    return frozenset(_PROBES)
