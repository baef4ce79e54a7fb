"""Tools, resources and prompts as objects, with the names that FastMCP and the official SDK give them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from funcmcp._authoring.signatures.signature import function_name
from funcmcp._compat.editable import Editable
from funcmcp._objects.mappings import without
from funcmcp._objects.public_names import public
from funcmcp._protocol import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Component:
    """A function with the options of its decorator, to be registered with ``add_tool``, ``add_resource`` and so on.

    Attributes:
        fn: The function.
        name: The name.
        options: The options of the decorator.
        describe: Returns the definition, once the component is registered.
        enabled: Whether the component itself is enabled. Rules of the server may hide it nevertheless.
        switches: Functions that show or hide the component, one for each server that has it.
    """

    kind = "tool"

    def __init__(self, fn: Callable[..., Any], name: str | None = None, **options: Any) -> None:
        self.fn = fn
        self.name: str = name or function_name(fn)
        self.options = options
        self.describe: Callable[[], Mapping[str, Any]] | None = None
        self.enabled: bool = options.get("enabled") is not False
        self.switches: list[Callable[[bool], None]] = []

    @classmethod
    def from_function(cls, fn: Callable[..., Any], name: str | None = None, **options: Any) -> Any:
        """Return an object for a function."""
        return cls(fn, name, **options)

    @property
    def key(self) -> str:
        """The name."""
        return self.name

    @property
    def title(self) -> str | None:
        """The title, if it was chosen."""
        return self.options.get("title")

    @property
    def description(self) -> str | None:
        """The description: the option, or the docstring."""
        return self.options.get("description") or self.fn.__doc__

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

    @property
    def auth(self) -> Any:
        """The authorization rule, which a component can't have here; see `component_options`."""
        return self.options.get("auth")

    @auth.setter
    def auth(self, _: Any) -> None:
        # FastMCP reads the attribute in each call. Here it would leave a component open that its author has protected.
        raise AttributeError(
            f"auth of the {self.kind} {self.name} can't be set. Use scopes= or authorize=; see "
            "docs/guides/authentication.md."
        )

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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.fn(*args, **kwargs)


@public("funcmcp.compat")
class Tool(Component):
    """A tool."""

    kind = "tool"

    @property
    def parameters(self) -> dict[str, Any]:
        """The input schema of a registered tool."""
        if self.describe is None:
            return {}
        schema: dict[str, Any] = self.describe()["inputSchema"]
        return schema

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The output schema of a registered tool; None if it has none."""
        if self.describe is None:
            return None
        return self.describe().get("outputSchema")


FunctionTool = Tool


@public("funcmcp.compat")
class Prompt(Component):
    """A prompt."""

    kind = "prompt"


FunctionPrompt = Prompt


@public("funcmcp.compat")
class Resource(Component):
    """A resource: a URI and the function that reads it."""

    kind = "resource"

    def __init__(
        self, fn: Callable[..., Any] | None = None, uri: Any = None, name: str | None = None, **options: Any
    ) -> None:
        if uri is None:
            uri = options.pop("uri_template", None)
        if uri is None:
            raise TypeError(f"{type(self).__name__} needs a uri.")
        super().__init__(fn or self.read, name or (function_name(fn) if fn else str(uri)), **options)
        self.uri: str = str(uri)

    @classmethod
    def from_function(cls, fn: Callable[..., Any], name: Any = None, **options: Any) -> Any:
        """Return a resource for a function: ``Resource.from_function(fn, uri="menu://today")``."""
        if "uri" not in options and "uri_template" not in options:
            options, name = {**options, "uri": name}, options.get("name")
        return cls(fn, name=name, **without(options, "name"))

    @property
    def mime_type(self) -> str | None:
        """The media type, if it was chosen."""
        return self.options.get("mime_type")

    def read(self) -> Any:
        """Return the contents."""
        raise NotImplementedError(f"{type(self).__name__}.read is not implemented.")


FunctionResource = Resource
ResourceTemplate = Resource


@public("funcmcp.compat")
class TextResource(Resource):
    """A text."""

    def __init__(self, uri: Any, text: str, name: str | None = None, **options: Any) -> None:
        super().__init__(None, uri, name, **{"mime_type": "text/plain", **options})
        self.text = text

    def read(self) -> str:
        """Return the text."""
        return self.text


@public("funcmcp.compat")
class BinaryResource(Resource):
    """Bytes."""

    def __init__(self, uri: Any, data: bytes, name: str | None = None, **options: Any) -> None:
        super().__init__(None, uri, name, **{"mime_type": "application/octet-stream", **options})
        self.data = data

    def read(self) -> bytes:
        """Return the bytes."""
        return self.data


@public("funcmcp.compat")
class FileResource(Resource):
    """A file, which is read at each call."""

    def __init__(
        self, uri: Any, path: Any, name: str | None = None, *, is_binary: bool = False, **options: Any
    ) -> None:
        super().__init__(None, uri, name, **{"mime_type": "text/plain", **options})
        self.path: Path = Path(path)
        mime_type = self.mime_type or ""
        self.is_binary: bool = is_binary or not (mime_type.startswith("text/") or mime_type.endswith(("json", "xml")))

    def read(self) -> str | bytes:
        """Return the contents of the file."""
        if self.is_binary:
            return self.path.read_bytes()
        return self.path.read_text(encoding="utf-8")


@public("funcmcp.compat")
class DirectoryResource(Resource):
    """The names of the files in a folder."""

    def __init__(
        self,
        uri: Any,
        path: Any,
        name: str | None = None,
        *,
        recursive: bool = False,
        pattern: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(None, uri, name, **{"mime_type": "application/json", **options})
        self.path: Path = Path(path)
        self.recursive = recursive
        self.pattern = pattern

    def read(self) -> dict[str, list[str]]:
        """Return the paths of the files below the folder."""
        pattern = self.pattern or "*"
        paths = self.path.rglob(pattern) if self.recursive else self.path.glob(pattern)
        return {"files": sorted(str(path.relative_to(self.path)) for path in paths if path.is_file())}


class ListedTool(Editable, objects.Tool):
    """A tool in the list of a server: its definition, with the names of FastMCP and the official SDK.

    Attributes:
        tags: The tags.
    """

    @property
    def key(self) -> str:
        """The name."""
        return self.name

    @property
    def parameters(self) -> dict[str, Any]:
        """The input schema."""
        return self.input_schema

    @property
    def inputSchema(self) -> dict[str, Any]:  # noqa: N802 - the SDK's name
        """The input schema."""
        return self.input_schema

    @property
    def outputSchema(self) -> dict[str, Any] | None:  # noqa: N802 - the SDK's name
        """The output schema."""
        return self.output_schema


def with_tags(item: Any, server: Any) -> Any:
    """Return an item of a list of a server with the attribute ``tags``, which middleware filters by."""
    catalog = server._server.catalog  # noqa: SLF001 - a part of FastMCP
    if isinstance(item, objects.Resource):
        feature = catalog.resources.get(item.uri)
    elif isinstance(item, objects.ResourceTemplate):
        feature = catalog.templates.get(item.uri_template)
    else:
        registry = catalog.prompts if isinstance(item, objects.Prompt) else catalog.tools
        feature = registry.get(item.name)
    item.tags = set() if feature is None else set(feature.tags)
    return item
