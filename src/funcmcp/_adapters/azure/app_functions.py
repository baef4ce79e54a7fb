"""The functions of a function app, as Azure's worker indexes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from azure.functions import FunctionApp
    from azure.functions.decorators.function_app import Function


def functions_of(app: FunctionApp) -> dict[str, Function]:
    """Return the functions that an app has so far, by name.

    Raises:
        ValueError: Two functions have the same name, or one has no trigger.
    """
    bindings = app.functions_bindings
    app.functions_bindings = None  # otherwise the worker, which calls get_functions() again, would find each name twice
    try:
        return {str(function.get_function_name()): function for function in app.get_functions()}
    finally:
        app.functions_bindings = bindings
