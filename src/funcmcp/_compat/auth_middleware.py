"""FastMCP's middleware that checks the authorization of all components of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from funcmcp._compat.authorization import (
    AuthContext,
    Checks,
    current_caller,
    run_auth_checks,
    run_auth_checks_with_shortfall,
    scope_requirements,
)
from funcmcp._compat.errors import AuthorizationError, InsufficientScopeError
from funcmcp._compat.middleware import CallNext, Middleware, MiddlewareContext
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from funcmcp._compat.versions import VersionSpec


@public("funcmcp.compat")
class AuthMiddleware(Middleware):
    """Shows callers only the components that checks allow, and refuses calls of others. On stdio nothing is checked.

    Args:
        auth: A check such as ``require_scopes("api")``, or a list of checks, all of which must pass.
    """

    def __init__(self, auth: Checks) -> None:
        self.auth = auth

    async def on_request(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Complete no arguments of a prompt or a template that checks refuse."""
        result = await call_next(context)
        if context.method != "completion/complete" or await self._may_complete(context):
            return result
        return {**result, "completion": {"values": []}}

    async def on_list_tools(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Leave out the tools that checks refuse."""
        return await self._allowed(await call_next(context))

    async def on_list_resources(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Leave out the resources that checks refuse."""
        return await self._allowed(await call_next(context))

    async def on_list_resource_templates(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Leave out the templates that checks refuse."""
        return await self._allowed(await call_next(context))

    async def on_list_prompts(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Leave out the prompts that checks refuse."""
        return await self._allowed(await call_next(context))

    async def on_call_tool(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Refuse the call of a tool that checks refuse."""
        name = context.message.name
        await self._check(f"tool {name!r}", context, lambda server, version: server.get_tool(name, version))
        return await call_next(context)

    async def check_resource_access(self, context: MiddlewareContext[Any]) -> None:
        """Refuse a resource that checks refuse."""
        uri = str(context.message.uri)
        await self._check(f"resource {uri!r}", context, lambda server, version: _resource(server, uri, version))

    async def on_get_prompt(self, context: MiddlewareContext[Any], call_next: CallNext[Any, Any]) -> Any:
        """Refuse a prompt that checks refuse."""
        name = context.message.name
        await self._check(f"prompt {name!r}", context, lambda server, version: server.find_prompt(name, version))
        return await call_next(context)

    async def _allowed(self, components: Any) -> Any:
        """Return the components that checks allow."""
        caller = current_caller()
        if caller.is_trusted:
            return components
        return [item for item in components if await self._allows(AuthContext(caller.token, item))]

    async def _allows(self, context: AuthContext) -> bool:
        try:
            return await run_auth_checks(self.auth, context)
        except AuthorizationError:
            return False

    async def _may_complete(self, context: MiddlewareContext[Any]) -> bool:
        caller = current_caller()
        if caller.is_trusted:
            return True
        reference = context.message.get("ref")
        if not isinstance(reference, dict) or context.fastmcp_context is None:
            return False
        server: Any = context.fastmcp_context.fastmcp
        version = context.fastmcp_context.requested_version
        if reference.get("type") == "ref/prompt":
            component = await server.find_prompt(str(reference.get("name")), version)
        else:
            component = await _resource(server, str(reference.get("uri")), version)
        return component is None or await self._allows(AuthContext(caller.token, component))

    async def _check(self, name: str, context: MiddlewareContext[Any], find: _Find) -> None:
        """Raise AuthorizationError if checks refuse the component of a request.

        Args:
            name: What the request names, for errors.
            context: The request.
            find: Returns the component; None if it does not exist, or is hidden from the caller.
        """
        if context.fastmcp_context is None:
            raise AuthorizationError(f"Authorization failed for {name}: missing context")
        caller = current_caller()
        if caller.is_trusted:
            return
        server: Any = context.fastmcp_context.fastmcp
        component = await find(server, context.fastmcp_context.requested_version)
        if component is None:
            raise AuthorizationError(f"Authorization failed for {name}: not found or not authorized")
        passes, missing = await run_auth_checks_with_shortfall(self.auth, AuthContext(caller.token, component))
        if passes:
            return
        if not missing:
            raise AuthorizationError(f"Authorization failed for {name}: insufficient permissions")
        missing = self._with_inner_scopes(missing, AuthContext(caller.token, component), server)
        text = f"Authorization failed for {name}: insufficient scope (required: {', '.join(missing)})"
        raise InsufficientScopeError(missing, message=text)

    def _with_inner_scopes(self, missing: list[str], context: AuthContext, server: Any) -> list[str]:
        """Return the scopes that a token lacks, with those for the middleware of this class further inside.

        The ones behind a check that needs more than scopes are not named: the caller may be refused there anyway.
        """
        scopes, is_inside = set(missing), False
        for middleware in server.middleware:
            if middleware is self:
                is_inside = True
            elif is_inside and isinstance(middleware, AuthMiddleware):
                further = scope_requirements(middleware.auth, context)
                if further is None:
                    break
                scopes.update(further)
        return sorted(scopes)


async def _resource(server: Any, uri: str, version: VersionSpec | None) -> Any:
    """Return the resource of a URI, or the template that it matches, in a version; None without."""
    return await server.get_resource(uri, version) or await server.get_resource_template(uri, version)


class _Find(Protocol):
    """Returns a component of a server."""

    def __call__(self, server: Any, version: VersionSpec | None, /) -> Awaitable[Any]:
        """Return the component in the version that a request names; None if it does not exist."""
