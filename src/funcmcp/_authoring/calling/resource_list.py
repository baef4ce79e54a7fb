"""Calls of a function that lists resources: definitions of resources out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._authoring.calling.function_call import FunctionCall
from funcmcp._authoring.values.content import ResourceInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from funcmcp._authoring.calling.function_call import FeatureFunction
    from funcmcp._server.calls.context import RequestContext


class ResourceListCall(FunctionCall[None, "list[dict[str, Any]]"]):
    """Calls a function that lists resources.

    Args:
        feature: The function.
        scheme: The scheme of the resources' URIs.
    """

    def __init__(
        self,
        feature: FeatureFunction,
        *,
        scheme: str,
    ) -> None:
        super().__init__(feature)
        self._scheme = scheme

    async def definitions(self, context: RequestContext) -> list[dict[str, Any]]:
        """Return the definitions of the resources, in the newest revision's shape."""
        return await self.run(context, None)

    def _new_reader(self) -> Callable[[None], dict[str, Any]]:
        if self.plan.arguments:
            parameter = self.plan.arguments[0].name
            raise TypeError(
                f"{self.name} lists resources, so it takes only a context and services. "
                f"Remove the parameter {parameter!r}, or register its type as a service."
            )
        return lambda _arguments: {}

    def _new_renderer(self) -> Callable[[Any], list[dict[str, Any]]]:
        return self._rendered

    def _rendered(self, value: Any) -> list[dict[str, Any]]:
        if not isinstance(value, list | tuple) or not all(isinstance(item, ResourceInfo) for item in value):
            raise TypeError(f"{self.name} must return a list of ResourceInfo objects.")
        definitions: list[dict[str, Any]] = [item.wire for item in value]
        for definition in definitions:
            if not definition["uri"].startswith(f"{self._scheme}:"):
                raise ValueError(
                    f"{self.name} lists resources of the scheme {self._scheme!r}, not {definition['uri']!r}."
                )
        return definitions
