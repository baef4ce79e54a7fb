"""More bindings of a function that an MCP trigger calls: blobs, queues, tables, and single arguments of the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic_core import from_json

from funcmcp._objects.public_names import public
from funcmcp._protocol.codec import encode
from funcmcp._server.catalog.registry import RegistrationError

if TYPE_CHECKING:
    from collections.abc import Mapping


_DATA_TYPES: dict[type | None, str] = {str: "string", bytes: "binary"}
"""What the host sends a value as; without this it sends a text, whatever there is."""


class _Binding:
    """One binding beside the trigger.

    Args:
        name: what the function finds it under in its `Bindings`.
        type: Azure's name for it, such as ``"blob"`` or ``"queue"``.
        python_type: of its value, where it is not the one that the azure-functions library chooses: ``str``, ``bytes``.
        settings: all else, as Azure's documentation names it: ``path="in/{mcptoolargs.id}"``, ``connection="..."``.
    """

    is_output: ClassVar[bool]

    def __init__(self, name: str, type: str, *, python_type: type | None = None, **settings: Any) -> None:
        if not name.isidentifier():
            raise RegistrationError(f"A binding's name must be a Python name; got {name!r}.")
        self.name = name
        self.type = type
        self.python_type = python_type
        self.settings = settings


@public("funcmcp.azure")
class Input(_Binding):
    """An input binding: ``Input("snippet", "blob", path="snippets/{mcptoolargs.name}", connection="Storage")``.

    ``Input("city", "mcpToolProperty")`` is one argument of the tool, and ``Input("code", "mcpPromptArgument")`` one of
    the prompt, both as a text; what else they say comes from the schema.
    """

    is_output = False

    def __init__(self, name: str, type: str, *, python_type: type | None = None, **settings: Any) -> None:
        super().__init__(name, type, python_type=python_type, **settings)
        if python_type in _DATA_TYPES and not {"data_type", "dataType"} & settings.keys():
            self.settings["data_type"] = _DATA_TYPES[python_type]


@public("funcmcp.azure")
class Output(_Binding):
    """An output binding: ``Output("orders", "queue", queue_name="orders", connection="Storage")``."""

    is_output = True


@public("funcmcp.azure")
class Bindings:
    """The values of one call's bindings: a service that functions ask for by this type.

    Example:
        ```python
        @mcp.tool
        def get_snippet(name: str, bindings: Bindings) -> str:
            return bindings["snippet"].read().decode()

        app = trigger_app(mcp, bindings={"get_snippet": [Input("snippet", "blob", path=..., connection=...)]})
        ```

    Args:
        values: by name; for outputs what takes them with a method `set`.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        """Return the value of an input; raise KeyError if there is no binding of this name."""
        return self._values[name]

    def set(self, name: str, value: Any) -> None:
        """Send a value to an output, a dict as JSON; raise KeyError if there is no binding of this name."""
        # Of a dict the azure-functions library would send a queue the names of the members alone.
        self._values[name].set(encode(value).decode() if isinstance(value, dict) else value)


_OF_ARGUMENTS = {
    "mcptoolproperty": ("toolProperties", ("propertyName", "property_name"), "propertyName"),
    "mcppromptargument": ("promptArguments", ("argumentName", "argument_name"), "name"),
}
"""By type: the trigger's key for the list of them, both spellings of the binding's key for the name, the list's key."""


def arguments_of(binding: _Binding, trigger: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of a binding; the host takes one of a single argument only if every key is there.

    Raises:
        RegistrationError: the feature has no such argument.
    """
    of_arguments = _OF_ARGUMENTS.get(binding.type.lower())
    if of_arguments is None:
        return binding.settings
    list_key, name_keys, name_member = of_arguments
    name = next((binding.settings[key] for key in name_keys if key in binding.settings), binding.name)
    for argument in from_json(trigger.get(list_key, "[]")):
        if argument[name_member] == name:
            return {**_argument_settings(name_keys[0], name, argument), **binding.settings}
    raise RegistrationError(f"{binding.type} {binding.name!r} is for {name!r}, which the feature has no argument for.")


def _argument_settings(name_key: str, name: str, argument: Mapping[str, Any]) -> dict[str, Any]:
    if name_key == "propertyName":
        return dict(argument)
    return {
        name_key: name,
        "description": argument.get("description", ""),
        "isRequired": argument.get("required", False),
    }
