"""Tools, resources and prompts as objects of the official SDK, whose methods return plain values and take a context."""

from __future__ import annotations

import asyncio
import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.results.sdk_results import is_sdk_type
from funcmcp._authoring.signatures.partials import is_async, signature_of
from funcmcp._authoring.signatures.signature import Signature, function_name
from funcmcp._compat import components, resource_kinds
from funcmcp._compat.content import messages_in
from funcmcp._compat.context import is_context
from funcmcp._compat.errors import ResourceError, ToolError, ValidationError
from funcmcp._compat.resolvers import check_resolvers
from funcmcp._compat.result_types import messages_of
from funcmcp._compat.security import INHERIT_SECURITY, ResourceSecurity, ResourceSecurityError
from funcmcp._objects.public_names import public
from funcmcp._protocol.errors import MCPError
from funcmcp._protocol.errors import ToolError as NativeToolError
from funcmcp._protocol.uri_template import URITemplate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from funcmcp._compat.context import Context

_TEXTS = frozenset({"application/json", "application/xml"})
"""Media types of texts beside ``text/*``, ``*+json`` and ``*+xml``."""


@public("funcmcp.compat.mcp")
class Tool(components.Tool):
    """A tool, as `funcmcp.compat.Tool`.

    Raises:
        InvalidSignature: A resolver of the function can't be called.
    """

    marks_results: bool = False

    def __init__(self, fn: Callable[..., Any] | None = None, name: str | None = None, **options: Any) -> None:
        super().__init__(fn, name, **options)
        check_resolvers(self.fn, self.name)

    @property
    def description(self) -> str:
        """The description: the option, or the docstring with its part about arguments, which schemas do not have."""
        return self.options.get("description") or getattr(self.fn, "__doc__", None) or ""

    @property
    def is_async(self) -> bool:
        """Whether the function is async."""
        return is_async(self.fn)

    @property
    def context_kwarg(self) -> str | None:
        """The parameter that gets the context; None if there is none."""
        return _context_parameter(self.fn)

    async def run(
        self,
        arguments: dict[str, Any],
        context: Context | None = None,
        convert_result: bool = False,  # noqa: FBT001, FBT002 - the SDK's parameter
    ) -> Any:
        """Run the tool outside of its server, without its middleware.

        Args:
            arguments: The arguments, which are converted and checked as those of a client.
            context: The context that the function gets.
            convert_result: Return the result of the tool in place of the value.

        Raises:
            MCPError: The function raised it.
            ToolError: The function failed, or the arguments are not those of the tool.
        """
        try:
            outcome = await self.direct_runs.run(self, arguments, context=context, has_result=convert_result)
        except (NativeToolError, ResourceError, ValidationError) as error:
            raise ToolError(f"Error executing tool {self.name}: {error}") from error
        except MCPError:
            raise
        except Exception as error:
            raise ToolError(f"Error executing tool {self.name}") from error
        return outcome.result if convert_result else outcome.value


def _context_parameter(function: Callable[..., Any]) -> str | None:
    hints = Signature(function).try_hints()
    return next((name for name, hint in hints.items() if name != "return" and is_context(hint)), None)


@public("funcmcp.compat.mcp")
class Prompt(components.Prompt):
    """A prompt, as `funcmcp.compat.Prompt`."""

    describes_arguments = False

    @property
    def description(self) -> str:
        """The description: the option, or the docstring with its part about arguments, which schemas do not have."""
        return self.options.get("description") or getattr(self.fn, "__doc__", None) or ""

    async def render(  # type: ignore[override] # what the SDK's returns
        self, arguments: dict[str, Any] | None, context: Context | None = None
    ) -> Any:
        """Return the messages for arguments, or the ``InputRequiredResult`` that the function returned.

        Raises:
            MCPError: The function raised it.
            ValueError: A required argument is missing, or the function failed.
        """
        missing = self.missing_arguments(arguments)
        if missing:
            raise ValueError(f"Missing required arguments: {missing}")
        try:
            value = (await self.direct_runs.run(self, arguments, context=context)).value
            if is_sdk_type(type(value)) and hasattr(value, "input_requests"):
                return value
            return messages_in(messages_of(value))
        except MCPError:
            raise
        except Exception as error:
            raise ValueError(f"Error rendering prompt {self.name}") from error

    def convert_result(self, value: Any) -> Any:
        """Return what the function returned, with messages in the place of dicts."""
        return messages_of(value)


@public("funcmcp.compat.mcp")
class Resource(components.Resource):
    """A resource, as `funcmcp.compat.Resource`."""

    def __init__(
        self, fn: Callable[..., Any] | None = None, uri: Any = None, name: str | None = None, **options: Any
    ) -> None:
        if type(self) is Resource and fn is None:
            raise TypeError("Can't instantiate abstract class Resource: use FunctionResource, or write a method read.")
        super().__init__(fn, uri, name, **options)

    converts_reads = False

    @classmethod
    def checked_uri(cls, uri: str) -> str:
        """Return a URI unchanged."""
        return uri

    async def read(self) -> str | bytes:
        """Return the contents: what the function returns, which is written as JSON if it is neither text nor bytes."""
        return await _contents(await super().read())


@public("funcmcp.compat.mcp")
class FunctionResource(Resource):
    """A resource whose contents a function returns. Its name is the URI, unless `from_function` makes it."""

    def __init__(
        self, fn: Callable[..., Any] | None = None, uri: Any = None, name: str | None = None, **options: Any
    ) -> None:
        if uri is None and name is None:
            raise ValueError("Either name or uri must be provided")
        super().__init__(fn, uri, name or str(uri), **options)

    @classmethod
    def from_function(cls, fn: Callable[..., Any], name: Any = None, **options: Any) -> Any:
        """Return a resource for a function: ``FunctionResource.from_function(fn, uri="menu://today")``."""
        if "uri" not in options:
            options, name = {**options, "uri": name}, options.get("name")
        return cls(fn, **{**options, "name": name or function_name(fn)})


async def _contents(value: Any) -> str | bytes:
    if isinstance(value, str | bytes):
        return value
    if is_sdk_type(type(value)) and hasattr(value, "input_requests"):
        raise ValueError(
            "static resources cannot return InputRequiredResult; only resource template functions participate in the "
            "multi-round-trip flow"
        )
    from pydantic_core import to_json  # noqa: PLC0415 - few resources return objects

    return to_json(value, fallback=str, indent=2).decode()


@public("funcmcp.compat.mcp")
class TextResource(Resource, resource_kinds.TextResource):
    """A text."""

    def __init__(self, uri: Any, text: str, name: str | None = None, **options: Any) -> None:
        resource_kinds.TextResource.__init__(self, uri, text, name, **options)

    async def read(self) -> str:
        """Return the text."""
        return self.text


@public("funcmcp.compat.mcp")
class BinaryResource(Resource, resource_kinds.BinaryResource):
    """Bytes."""

    def __init__(self, uri: Any, data: bytes, name: str | None = None, **options: Any) -> None:
        resource_kinds.BinaryResource.__init__(self, uri, data, name, **options)

    async def read(self) -> bytes:
        """Return the bytes."""
        return self.data


@public("funcmcp.compat.mcp")
class FileResource(Resource):
    """A file, which is read at each call.

    Args:
        uri: The URI.
        path: The absolute path of the file.
        name: The name. By default it is the URI.
        encoding: The encoding of a text; None for bytes. By default it is the ``charset`` of the media type, UTF-8 for
            other texts, and None for other media types.
        options: The options of a resource.

    Raises:
        ValueError: The path is not absolute, or the encoding is unknown.
    """

    def __init__(
        self, uri: Any, path: Any, name: str | None = None, *, encoding: str | None = "", **options: Any
    ) -> None:
        super().__init__(None, uri, name, **{"mime_type": "text/plain", **options})
        self.path: Path = Path(path)
        if not self.path.is_absolute():
            raise ValueError("Path must be absolute")
        self.encoding: str | None = encoding_of(self.mime_type) if encoding == "" else encoding
        if self.encoding is not None:
            _check_encoding(self.encoding)

    def _source(self) -> Callable[..., Any]:
        return self.load

    def load(self) -> str | bytes:
        """Return the contents of the file."""
        if self.encoding is None:
            return self.path.read_bytes()
        return self.path.read_text(encoding=self.encoding)

    async def read(self) -> str | bytes:
        """Return the contents of the file."""
        return await asyncio.to_thread(self.load)


def encoding_of(mime_type: str) -> str | None:
    """Return the encoding of a file with a media type; None for bytes."""
    essence, *parameters = mime_type.split(";")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset" and value:
            return value.strip().strip('"')
    essence = essence.strip().lower()
    is_text = essence.startswith("text/") or essence.endswith(("+json", "+xml")) or essence in _TEXTS
    return "utf-8-sig" if is_text else None


def _check_encoding(encoding: str) -> None:
    """Raise ValueError if an encoding is unknown, or not one of texts."""
    try:
        b"x".decode(encoding)
    except LookupError as error:
        raise ValueError(str(error)) from error
    except UnicodeError:
        pass  # the encoding exists, and one byte is not a character of it


@public("funcmcp.compat.mcp")
class DirectoryResource(Resource, resource_kinds.DirectoryResource):
    """The names of the files in a folder.

    Raises:
        ValueError: The path is not absolute.
    """

    def __init__(self, uri: Any, path: Any, name: str | None = None, **options: Any) -> None:
        resource_kinds.DirectoryResource.__init__(self, uri, path, name, **options)
        if not self.path.is_absolute():
            raise ValueError("Path must be absolute")

    async def read(self) -> str:
        """Return the paths of the files below the folder, as JSON."""
        return json.dumps(await asyncio.to_thread(self.load), indent=2)


@public("funcmcp.compat.mcp")
class ResourceTemplate(components.ResourceTemplate):
    """A resource template, as `funcmcp.compat.ResourceTemplate`."""

    resource_class: type[components.Resource] = FunctionResource
    converts_reads = False

    @classmethod
    def check_function(cls, fn: Callable[..., Any], uri: str, name: str | None) -> None:
        """Check nothing: the server does."""

    @property
    def security(self) -> Any:
        """The policy for values of the variables; `INHERIT_SECURITY` for that of the server."""
        return self.options.get("security") or INHERIT_SECURITY

    def read_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values unchanged."""
        return dict(values)

    @property
    def context_kwarg(self) -> str | None:
        """The parameter that gets the context; None if there is none."""
        return _context_parameter(self.fn)

    def matches(self, uri: str) -> dict[str, Any] | None:
        """Return the values of the variables in a URI; None if the URI does not match.

        Raises:
            ResourceSecurityError: The policy of the template rejects a value.
        """
        values = URITemplate(self.uri).unchecked_match(str(uri))
        if values is None:
            return None
        policy: ResourceSecurity = self.options.get("security") or ResourceSecurity()
        rejected = policy.validate(values)
        if rejected is not None:
            raise ResourceSecurityError(self.uri, rejected)
        return values

    async def create_resource(self, uri: str, params: dict[str, Any], context: Context | None = None) -> Any:
        """Return a resource with what the function returns for values, or its ``InputRequiredResult``.

        Raises:
            MCPError: The function raised it.
            ResourceError: The function failed.
        """
        try:
            value = await self._value(params, context)
        except MCPError:
            raise
        except Exception as error:
            raise ResourceError(f"Error creating resource from template {uri}") from error
        if is_sdk_type(type(value)) and hasattr(value, "input_requests"):
            return value
        options = {name: option for name, option in self.options.items() if name not in {"enabled", "security"}}
        return self.resource_class(lambda: value, uri, self.name, **{"description": self.description, **options})


def check_parameters(uri: str, function: Callable[..., Any]) -> None:
    """Check that the parameters of a resource's function are the variables of its URI.

    Raises:
        ValueError: They are not, a variable of the query has no default, or the function of a resource without
            variables takes the context.
    """
    hints = Signature(function).try_hints()
    signature = signature_of(function)
    contexts = {name for name in signature.parameters if is_context(hints.get(name))}
    parameters = signature.parameters.keys() - contexts
    variables = set(URITemplate(uri).variables)
    if not variables and parameters:
        raise ValueError(
            f"Resource {uri!r} has no URI template variables, but the handler declares parameters {parameters}. Add "
            "matching {...} variables to the URI or remove the parameters."
        )
    if not variables and contexts:
        raise ValueError(
            f"Resource {uri!r} has no URI template variables, but the handler declares a Context parameter. Context "
            "injection for static resources is not supported. Add a template variable to the URI or remove the "
            "Context parameter."
        )
    if variables != parameters:
        raise ValueError(f"Mismatch between URI parameters {variables} and function parameters {set(parameters)}")
    optional = URITemplate(uri).optional
    required = sorted(name for name in optional if signature.parameters[name].default is inspect.Parameter.empty)
    if required:
        raise ValueError(
            f"Resource {uri!r}: query parameter(s) {required} have no default value. A client may omit a query "
            "parameter, so the matching handler parameter must declare a default."
        )
