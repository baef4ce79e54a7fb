"""Tools, resources and prompts as objects, with the names that FastMCP and the official SDK give them."""

from __future__ import annotations

import functools
import inspect
from copy import copy as shallow_copy
from copy import deepcopy
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

from funcmcp._authoring.calling.resource_read import lists_in
from funcmcp._authoring.results.content import PromptResult as NativePromptResult
from funcmcp._authoring.results.sdk_results import converted
from funcmcp._authoring.signatures.docstring import description as docstring
from funcmcp._authoring.signatures.docstring import parameter_descriptions
from funcmcp._authoring.signatures.signature import Signature, function_name
from funcmcp._compat.annotations import plain
from funcmcp._compat.component_fields import set_fields
from funcmcp._compat.content import (
    PromptResult,
    ResourceContent,
    ResourceResult,
    ToolResult,
    messages_in,
    resource_result,
    tool_result,
)
from funcmcp._compat.editable import public_meta, sdk_object
from funcmcp._compat.errors import FastMCPError, PromptError, ValidationError
from funcmcp._compat.pages import with_page
from funcmcp._compat.prompt_functions import converting, described_arguments
from funcmcp._compat.resource_functions import check_template, normalized_uri, read_values, with_named_variables
from funcmcp._compat.result_types import messages_of
from funcmcp._compat.security import INHERIT_SECURITY
from funcmcp._compat.task_config import TaskConfig, config_of
from funcmcp._compat.tool_metadata import check_output_schema, check_timeout, warn_of_name, with_metadata
from funcmcp._compat.versions import checked_version
from funcmcp._objects.mappings import only, without
from funcmcp._objects.public_names import public
from funcmcp._protocol import objects
from funcmcp._protocol.apps import PAGE_TYPE, is_page
from funcmcp._protocol.errors import MCPError
from funcmcp._protocol.uri_template import URITemplate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

    from funcmcp._compat.context import Context
    from funcmcp._compat.security import ResourceSecurity

T = TypeVar("T")


class Outcome(NamedTuple):
    """What a function returned.

    Attributes:
        value: The value.
        result: The result of a tool for it.
    """

    value: Any
    result: objects.CallToolResult


class DirectRuns(Protocol):
    """Runs components outside of a server, as the module `direct_runs` does."""

    async def run(
        self, component: Any, arguments: Mapping[str, Any] | None, *, context: Any = None, has_result: bool = False
    ) -> Outcome:
        """Call the function of a component, and return what it returned."""

    def definition_of(self, component: Any) -> Mapping[str, Any]:
        """Return the definition of a component that is not registered."""

    def input_schema_of(self, component: Any) -> dict[str, Any]:
        """Return the JSON schema of the arguments of a component's function."""

    def parameters_of(self, tool: Any) -> dict[str, Any]:
        """Return the input schema of a tool, with references."""

    def output_schema_of(self, tool: Any) -> dict[str, Any] | None:
        """Return the output schema of a tool, with references."""

    def result_of(self, tool: Any, value: Any) -> objects.CallToolResult:
        """Return the result of a tool for a value."""

    def dump_of(self, tool: Any) -> dict[str, Any]:
        """Return the attributes of a tool."""

    def tool_definition_of(self, tool: Any, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the definition of a tool with changed members."""


OPTION_ATTRIBUTES = frozenset({"title", "description", "tags", "annotations", "icons", "meta"})
"""Attributes that are options of a component."""


class Component:
    """A function with the options of its decorator, to be registered with ``add_tool``, ``add_resource`` and so on.

    Attributes:
        fn: The function.
        name: The name.
        options: The options of the decorator.
        version: The version, if it was chosen.
        describe: Returns the definition, once the component is registered.
        enabled: Whether the component itself is enabled. Rules of the server may hide it nevertheless.
        switches: Functions that show or hide the component, one for each server that has it.
        listeners: Functions that are called when a definition has changed, one for each server that has the component.
    """

    kind = "tool"
    KEY_PREFIX: str = "tool"
    """The beginning of keys."""
    tool_name = "function"
    """The name of the tool as which the function runs outside of a server."""

    def __init__(self, fn: Callable[..., Any], name: str | None = None, **options: Any) -> None:
        self.fn: Callable[..., Any] = fn
        self.name: str = name or function_name(fn)
        options = set_fields(self, Component, options)
        if "app" in options:
            options = with_page(options, is_tool=self.kind == "tool")
        self.options = options
        self.version: str | None = checked_version(options.get("version"))
        self.describe: Callable[[], Mapping[str, Any]] | None = None
        self.enabled: bool = options.get("enabled") is not False
        self.switches: list[Callable[[bool], None]] = []
        self.listeners: list[Callable[[], None]] = []

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute. If clients have the component already, they get the new definition and the new function."""
        if name in OPTION_ATTRIBUTES:
            self.options[name] = value
        else:
            super().__setattr__(name, value)
        if name in OPTION_ATTRIBUTES or name == "fn":
            for changed in vars(self).get("listeners", ()):
                changed()

    @classmethod
    def make_key(cls, identifier: str) -> str:
        """Return the key of a component of this class without its version, such as ``"tool:add"``."""
        return f"{cls.KEY_PREFIX}:{identifier}"

    @classmethod
    def from_function(cls, fn: Callable[..., Any], name: str | None = None, **options: Any) -> Any:
        """Return an object for a function."""
        return cls(fn, name, **options)

    @property
    def direct_runs(self) -> DirectRuns:
        """What runs the component outside of its server. It needs the server, so it is loaded when it is first used."""
        return cast("DirectRuns", import_module("funcmcp._compat.direct_runs"))

    @property
    def identifier(self) -> str:
        """The name, or the URI of a resource, of which each server has one in each version."""
        return self.name

    @property
    def key(self) -> str:
        """The kind, the name or URI, and the version, such as ``"tool:add@1.0"`` or ``"tool:add@"``."""
        return f"{self.make_key(self.identifier)}@{self.version or ''}"

    @property
    def title(self) -> str | None:
        """The title, if it was chosen."""
        return self.options.get("title")

    @property
    def description(self) -> str | None:
        """The description: the option, or the docstring without what it says of parameters."""
        description: str | None = self.options.get("description")
        if description is not None:
            return description
        return docstring(self.fn, set(parameter_descriptions(self.fn).values())) or None

    @property
    def tags(self) -> set[str]:
        """The tags."""
        return set(self.options.get("tags") or ())

    @property
    def annotations(self) -> Any:
        """The annotations, if there are any."""
        return self.options.get("annotations")

    @property
    def meta(self) -> Any:
        """The ``_meta``, if there is any."""
        return self.options.get("meta")

    def get_meta(self) -> dict[str, Any]:
        """Return the ``_meta`` with the tags and the version in ``"fastmcp"``."""
        return public_meta(self)

    @property
    def auth(self) -> Any:
        """The checks of the caller's authorization; None if every caller may use the component."""
        return self.options.get("auth")

    @auth.setter
    def auth(self, checks: Any) -> None:
        if self.describe is not None:
            # FastMCP reads the attribute in each call. Here it would leave a component open that its author protects.
            raise AttributeError(
                f"auth of the {self.kind} {self.name} can't be set once it is registered. Pass auth= to its decorator."
            )
        self.options["auth"] = checks

    @property
    def icons(self) -> Any:
        """The icons, if there are any."""
        return self.options.get("icons")

    @property
    def definition(self) -> Mapping[str, Any]:
        """The definition in JSON form; that of a server of its own before the component is registered."""
        if self.describe is not None:
            return self.describe()
        return self.direct_runs.definition_of(self)

    def finished(self, feature: Any) -> Any:
        """Return the feature that a server has made of the component, for subclasses that change it."""
        return feature

    def enable(self) -> None:
        """Show the component to clients, unless the tags that its server includes or excludes hide it."""
        self._switch(enabled=True)

    def disable(self) -> None:
        """Hide the component from clients."""
        self._switch(enabled=False)

    def _switch(self, *, enabled: bool) -> None:
        self.enabled = enabled
        for switch in self.switches:
            switch(enabled)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy that no server has, with other values of its attributes.

        Args:
            update: The values by attribute.
            deep: Ignored: a copy has the same function.
        """
        del deep
        changes = dict(update or {})
        copy = shallow_copy(self)
        copy.describe, copy.switches, copy.listeners = None, [], []
        for name in ("name", "fn", "uri", "version"):
            if name in changes:
                setattr(copy, name, changes[name])
        copy.version = checked_version(copy.version)
        names = {"uri_template": "uri"}
        copy.options = {**self.options, **without(changes, "name", "fn", "uri", *names)}
        for name, attribute in names.items():
            if name in changes:
                setattr(copy, attribute, changes[name])
        return copy

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.fn(*args, **kwargs)


@public("funcmcp.compat")
class Tool(Component):
    """A tool: a function, or a subclass with a method ``run`` that takes the arguments as a dict.

    Args:
        fn: The function; None for a subclass.
        name: The name. By default it is the function's.
        parameters: The input schema of a subclass.
        options: The options of the decorator.

    Raises:
        TypeError: There is neither a function nor a method ``run``.
        ValueError: A lambda has no name.
    """

    kind = "tool"
    marks_results: bool = True
    """Whether results are written and marked as FastMCP does, rather than as the official SDK."""

    takes_any_arguments: bool = False
    """Whether the function gets arguments as they are: they are neither checked nor converted."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        name: str | None = None,
        *,
        parameters: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.has_function: bool = fn is not None
        self._schema = parameters
        if fn is None:
            if name is None or (type(self).run is Tool.run and parameters is None):
                raise TypeError(f"{type(self).__name__} needs a function, or a name and a method run.")
            fn = self._run_with
            options["input_schema"] = parameters or {"type": "object", "properties": {}}
        else:
            name, options = with_metadata(fn, name, options)
            _check_name(fn, name)
            if not self.takes_any_arguments:
                _check_parameters(fn, self.kind)
                check_output_schema(options.get("output_schema"))
            check_timeout(fn, name, options)
        warn_of_name(name)
        super().__init__(fn, name, **options)

    @classmethod
    def from_tool(cls, tool: Any, name: str | None = None, **changes: Any) -> Any:
        """Return a `TransformedTool`: a tool that changes how clients see another one.

        Args:
            tool: The other tool, or a function.
            name: The name. By default it is that of the other tool.
            changes: The changes, as `TransformedTool` takes them.
        """
        # The class is one of tools, which are defined here, so it is loaded when it is first used.
        return import_module("funcmcp._compat.tool_transforms").TransformedTool(tool, name, **changes)

    @property
    def tool_name(self) -> str:  # type: ignore[override] # of each tool
        """The name."""
        return self.name

    @property
    def parameters(self) -> dict[str, Any]:
        """The input schema."""
        if self._schema is None:
            self._schema = self.direct_runs.parameters_of(self)
        return self._schema

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The output schema; None if it has none."""
        return self.direct_runs.output_schema_of(self)

    @property
    def timeout(self) -> float | None:
        """The time limit of a call in seconds; None if it has none."""
        return self.options.get("timeout")

    @property
    def task_config(self) -> TaskConfig:
        """Whether the tool runs as a task."""
        return config_of(self.options.get("task"))

    def convert_result(self, raw_value: Any) -> ToolResult:
        """Return the result of the tool for a value that its function would return."""
        if isinstance(raw_value, ToolResult):
            return raw_value
        return tool_result(self.direct_runs.result_of(self, raw_value))

    def model_dump(
        self, *, exclude_none: bool = False, exclude: Any = (), include: Any = None, **_: Any
    ) -> dict[str, Any]:
        """Return the attributes of the tool as a dict."""
        dumped = self.direct_runs.dump_of(self)
        names = [name for name in dumped if name not in exclude and (include is None or name in include)]
        return {name: dumped[name] for name in names if not exclude_none or dumped[name] is not None}

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Run the tool outside of its server, without its middleware.

        Args:
            arguments: The arguments, which are converted and checked as those of a client.

        Raises:
            Exception: What the function raised.
            ValidationError: The arguments are not those of the tool.
        """
        if not self.has_function:
            raise NotImplementedError("Subclasses must implement run()")
        outcome = await self.direct_runs.run(self, arguments, has_result=True)
        return tool_result(outcome.result)

    async def _run_with(self, arguments: dict[str, Any]) -> Any:
        return await self.run(arguments)

    def to_mcp_tool(self, **overrides: Any) -> Any:
        """Return the definition as a ``Tool`` of ``mcp.types``, or in JSON form without the package `mcp`."""
        definition = self.direct_runs.tool_definition_of(self, overrides)
        return sdk_object("Tool", {**definition, **overrides})


FunctionTool = Tool


@public("funcmcp.compat")
class Prompt(Component):
    """A prompt: a function, or a subclass with a method ``render`` that takes the arguments as a dict.

    Args:
        fn: The function; None for a subclass.
        name: The name. By default it is the function's.
        arguments: The arguments of a subclass: a list of ``PromptArgument``, or None without arguments.
        options: The options of the decorator.

    Raises:
        TypeError: There is neither a function nor a name.
        ValueError: A lambda has no name, or a parameter can't be filled by its name.
    """

    kind = "prompt"
    describes_arguments = True
    """Whether arguments are read and described as FastMCP does."""
    KEY_PREFIX: str = "prompt"

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        name: str | None = None,
        *,
        arguments: Sequence[Any] | None = None,
        **options: Any,
    ) -> None:
        self.has_function: bool = fn is not None
        if fn is None:
            if name is None:
                raise TypeError(f"{type(self).__name__} needs a function, or a name and a method render.")
            self._arguments = [dict(plain(argument)) for argument in arguments or ()]
            fn = self.render
        else:
            _check_name(fn, name)
            _check_parameters(fn, self.kind)
        super().__init__(fn, name, **options)

    @property
    def description(self) -> str | None:
        """The description: the option, or the docstring without its part about arguments."""
        if not self.has_function:
            return self.options.get("description")
        return self.options.get("description") or docstring(self.fn, parameter_descriptions(self.fn).values()) or None

    def described(self, describe: Callable[[], Mapping[str, Any]]) -> Callable[[], Mapping[str, Any]]:
        """Return a function that returns the definition with the descriptions that FastMCP writes."""

        @functools.cache
        def described() -> Mapping[str, Any]:
            definition = without(describe(), "description")
            if self.description:
                definition["description"] = self.description
            if not self.has_function:
                definition["arguments"] = self._arguments
            elif "arguments" in definition:
                definition["arguments"] = described_arguments(self.fn, definition["arguments"])
            return definition

        return described

    @property
    def arguments(self) -> list[objects.PromptArgument]:
        """The arguments."""
        return objects.objects_of(self.definition.get("arguments", []), objects.PromptArgument)

    async def render(self, arguments: dict[str, Any] | None = None) -> PromptResult:
        """Return the messages for arguments.

        Raises:
            PromptError: The function failed, or an argument does not fit its type.
            ValidationError: A required argument is missing.
        """
        if not self.has_function:
            raise NotImplementedError("Subclasses must implement render()")
        missing = self.missing_arguments(arguments)
        if missing:
            raise ValidationError(f"Missing required arguments: {missing}")
        known = only(arguments or {}, [argument.name for argument in self.arguments])
        result: PromptResult = self.convert_result(await self._value(known))
        return result

    def convert_result(self, value: Any) -> Any:
        """Return what the function returned as a `PromptResult` with the description and the ``_meta`` of the prompt.

        Results of funcmcp and of the official SDK are returned unchanged.

        Raises:
            TypeError: FastMCP does not take the value.
        """
        if isinstance(converted(value), NativePromptResult) or hasattr(value, "input_requests"):
            return value
        return PromptResult(messages_in(messages_of(value)), self.description, result_meta(self.meta) or None)

    def missing_arguments(self, arguments: Mapping[str, Any] | None) -> set[str]:
        """Return the names of required arguments that are missing."""
        return {argument.name for argument in self.arguments if argument.required} - set(arguments or ())

    async def _value(self, arguments: Mapping[str, Any] | None) -> Any:
        try:
            runnable = shallow_copy(self)
            runnable.fn = converting(self.fn)
            return (await self.direct_runs.run(runnable, arguments)).value
        except ValidationError as error:
            raise PromptError(f"Could not convert argument {error}") from error
        except (MCPError, FastMCPError):
            raise
        except Exception as error:
            raise PromptError(f"Error rendering prompt {self.name}.") from error

    def to_mcp_prompt(self, **overrides: Any) -> Any:
        """Return the definition as a ``Prompt`` of ``mcp.types``."""
        return sdk_object("Prompt", {**self.definition, **overrides})


FunctionPrompt = Prompt


@public("funcmcp.compat")
class Resource(Component):
    """A resource: a URI and the function that reads it."""

    kind = "resource"
    converts_reads = True
    """Whether what the function returns becomes a `ResourceResult`, as in FastMCP."""
    KEY_PREFIX: str = "resource"

    def __init__(
        self, fn: Callable[..., Any] | None = None, uri: Any = None, name: str | None = None, **options: Any
    ) -> None:
        if uri is None:
            uri = options.pop("uri_template", None)
        if uri is None:
            raise TypeError(f"{type(self).__name__} needs a uri.")
        super().__init__(fn or self._source(), name or str(uri), **options)
        self.has_function: bool = fn is not None
        self.uri: str = self.checked_uri(str(uri))

    @property
    def identifier(self) -> str:
        """The URI."""
        return self.uri

    @classmethod
    def checked_uri(cls, uri: str) -> str:
        """Return a URI in the form in which FastMCP's clients send it; raise ValueError if it is not a URI."""
        return normalized_uri(uri)

    def _source(self) -> Callable[..., Any]:
        """Return the function of a subclass."""
        return self.read

    @classmethod
    def from_function(cls, fn: Callable[..., Any], name: Any = None, **options: Any) -> Any:
        """Return a resource for a function: ``Resource.from_function(fn, uri="menu://today")``."""
        if "uri" not in options and "uri_template" not in options:
            options, name = {**options, "uri": name}, options.get("name")
        uri = options.get("uri", options.get("uri_template"))
        fn = cls.with_variables(fn, str(uri))
        cls.check_function(fn, str(uri), name)
        return cls(fn, name=name or function_name(fn), **without(options, "name"))

    @classmethod
    def with_variables(cls, fn: Callable[..., Any], uri: str) -> Callable[..., Any]:  # noqa: ARG003 - for templates
        """Return a function whose parameters are those that the URI fills."""
        return fn

    @classmethod
    def check_function(cls, fn: Callable[..., Any], uri: str, name: str | None) -> None:
        """Raise ValueError if a function can't read the resources of a URI; some kinds of resources check nothing."""

    @property
    def mime_type(self) -> str:
        """The media type."""
        default = PAGE_TYPE if is_page(self.uri) else "text/plain"
        return self.options.get("mime_type") or default

    def convert_result(self, value: Any) -> Any:
        """Return what a read has returned as a `ResourceResult` with the media type and the ``_meta`` of the resource.

        Raises:
            TypeError: FastMCP does not take the value.
        """
        return resource_result(value, self.mime_type, result_meta(self.meta))

    async def _read(self) -> Any:
        """Return the contents as a `ResourceResult`, as FastMCP's server reads them."""
        return self.convert_result(await self.read())

    def _result(self, contents: str | bytes) -> ResourceResult:
        return ResourceResult([ResourceContent(contents, self.mime_type, result_meta(self.meta) or None)])

    async def read(self) -> Any:
        """Return what the function returns. Subclasses return the contents."""
        if not self.has_function:
            raise NotImplementedError("Subclasses must implement read()")
        value = await self._value(None)
        return await value.read() if isinstance(value, Resource) else value

    async def _value(self, arguments: Mapping[str, Any] | None, context: Context | None = None) -> Any:
        value = (await self.direct_runs.run(self, arguments, context=context)).value
        return await value if inspect.isawaitable(value) else value

    def to_mcp_resource(self, **overrides: Any) -> Any:
        """Return the definition as a ``Resource`` of ``mcp.types``."""
        return sdk_object("Resource", {**self.definition, **overrides})


FunctionResource = Resource


@public("funcmcp.compat")
class ResourceTemplate(Resource):
    """A resource template: a URI with variables, and the function that takes their values."""

    KEY_PREFIX: str = "template"
    resource_class: type[Resource] = Resource
    """The class of resources that `create_resource` returns."""

    def __init__(
        self, fn: Callable[..., Any] | None = None, uri: Any = None, name: str | None = None, **options: Any
    ) -> None:
        parameters = options.pop("parameters", None)
        if fn is not None:
            _check_name(fn, name)
        super().__init__(fn, uri, name, **options)
        self._parameters: dict[str, Any] | None = parameters

    @classmethod
    def checked_uri(cls, uri: str) -> str:
        """Return a template unchanged."""
        return uri

    @classmethod
    def with_variables(cls, fn: Callable[..., Any], uri: str) -> Callable[..., Any]:
        """Return a function whose parameters are those that the URI fills: also those in its ``**kwargs``."""
        return with_named_variables(fn, uri)

    @classmethod
    def check_function(cls, fn: Callable[..., Any], uri: str, name: str | None) -> None:
        """Raise ValueError if FastMCP refuses the function or the template."""
        check_template(fn, uri, name)

    @property
    def uri_template(self) -> str:
        """The URI template."""
        return self.uri

    @uri_template.setter
    def uri_template(self, uri: str) -> None:
        self.uri = uri

    @property
    def security(self) -> Any:
        """The policy for values of the variables; None without one, and `INHERIT_SECURITY` for that of the server."""
        return self.options.get("security", INHERIT_SECURITY)

    def resolve_security(self, server_default: ResourceSecurity | None) -> ResourceSecurity | None:
        """Return the policy of the template, or that of its server if it has none of its own."""
        policy: ResourceSecurity | None = server_default if self.security is INHERIT_SECURITY else self.security
        return policy

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the function's arguments."""
        return self.direct_runs.input_schema_of(self) if self._parameters is None else self._parameters

    def matches(self, uri: str) -> dict[str, Any] | None:
        """Return the values of the variables in a URI, which are not checked; None if the URI does not match."""
        types = Signature(self.fn).try_types() if self.has_function else None
        joined = () if types is None else lists_in(types.parameters)
        values = URITemplate(self.uri, joined=joined).unchecked_match(str(uri))
        if values is None:
            return None
        return {name: self._matched(name, value) for name, value in values.items()}

    def _matched(self, name: str, value: Any) -> Any:
        """Return the value of a variable: the parts of a path are one text, as in FastMCP."""
        is_path = isinstance(value, list) and f"{{{name}*}}" in self.uri
        return "/".join(value) if is_path else value

    async def read(self, arguments: dict[str, Any]) -> Any:  # type: ignore[override] # a template needs values
        """Return what the function returns for values of the variables.

        Raises:
            ValueError: A text is not a value of the parameter's type.
        """
        if not self.has_function:
            raise NotImplementedError("Subclasses must implement read() or override create_resource()")
        return await self._value(self.read_values(arguments))

    def read_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a URI as the function takes them; raise ValueError for one that does not fit."""
        return read_values(self.fn, values)

    async def _read(self, uri: str, params: dict[str, Any]) -> Any:  # type: ignore[override] # as above
        """Return the contents of a resource of the template, as FastMCP's server reads them."""
        if self.has_function:
            return self.convert_result(await self.read(params))
        resource = await self.create_resource(uri, params)
        return self.convert_result(await resource.read())

    async def create_resource(self, uri: str, params: dict[str, Any]) -> Resource:
        """Return a resource that reads the template with values of its variables."""

        async def read() -> Any:
            return await self.read(params)

        options = without({"description": self.description, **self.options}, "enabled", "security")
        if options.get("meta") is not None:
            options["meta"] = deepcopy(options["meta"])
        return self.resource_class(read, uri, self.name, **options)

    def to_mcp_template(self, **overrides: Any) -> Any:
        """Return the definition as a ``ResourceTemplate`` of ``mcp.types``."""
        return sdk_object("ResourceTemplate", {**self.definition, **overrides})


FunctionResourceTemplate = ResourceTemplate


def result_meta(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the ``_meta`` of a component without the private names of its member ``fastmcp``."""
    public = dict(meta or {})
    described = public.get("fastmcp")
    if isinstance(described, dict):
        public["fastmcp"] = {name: value for name, value in described.items() if not name.startswith("_")}
        if not public["fastmcp"]:
            del public["fastmcp"]
    return public


def _check_name(function: Callable[..., Any], name: str | None) -> None:
    """Raise ValueError if a component would have the name of a lambda."""
    if not name and function_name(function) == "<lambda>":
        raise ValueError("You must provide a name for lambda functions")


def _check_parameters(function: Callable[..., Any], kind: str) -> None:
    """Raise ValueError if a function has parameters that can't be filled by name."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a function of C without a signature
        return
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise ValueError(f"Functions with *args are not supported as {kind}s")
        if parameter.kind is parameter.VAR_KEYWORD:
            raise ValueError(f"Functions with **kwargs are not supported as {kind}s")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ValueError(
                f"Functions with positional-only parameters are not supported as {kind}s, because arguments are passed "
                "by name. Replace them with standard parameters that can be passed as keywords."
            )
