"""The functions of an app as Azure's worker will find them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from azure.functions import FunctionApp
    from azure.functions.decorators.function_app import Function


def functions_of(app: FunctionApp) -> dict[str, Function]:
    """Return the functions that an app has so far, by name.

    Raises:
        ValueError: two of them have one name, or one has no trigger.
    """
    seen = app.functions_bindings
    app.functions_bindings = None  # else the worker, which asks once more, would find each name taken
    try:
        return {str(function.get_function_name()): function for function in app.get_functions()}
    finally:
        app.functions_bindings = seen
