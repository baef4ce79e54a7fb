"""Authorization of components: `auth=` of tools, resources and prompts, with the checks of FastMCP.

How it works: the checks of a component become `Feature.shown_if`. So lists, searches and calls ask them in each
request, and to a caller that they refuse the component does not exist. On stdio nothing is checked, because the user of
the process may use everything.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from funcmcp._compat.context import OutsideRequestError, context_variable
from funcmcp._compat.errors import AuthorizationError
from funcmcp._compat.request_parts import AccessToken, access_token_of
from funcmcp._objects.public_names import public

if TYPE_CHECKING:
    from funcmcp._server.calls.context import RequestContext
    from funcmcp._server.calls.feature import Feature, ShownIf

_logger = logging.getLogger("funcmcp.compat")


@public("funcmcp.compat")
@dataclass
class AuthContext:
    """What a check of authorization gets.

    Attributes:
        token: The caller's token; None for a caller without credentials.
        component: The tool, resource, template or prompt.
    """

    token: AccessToken | None
    component: Any

    @property
    def tool(self) -> Any:
        """The component if it is a tool; else None."""
        return self.component if getattr(self.component, "kind", None) == "tool" else None


AuthCheck: TypeAlias = "Callable[[AuthContext], bool] | Callable[[AuthContext], Awaitable[bool]]"
"""A function, plain or async, that gets an `AuthContext` and returns whether the caller may use the component."""

Checks: TypeAlias = "AuthCheck | list[AuthCheck]"


class ScopeCheck:
    """A check that needs scopes, and can say which of them a token lacks.

    Args:
        scopes: The scopes.
        tag: The tag of the components to which the check applies; None for all.
    """

    def __init__(self, scopes: Iterable[str], tag: str | None = None) -> None:
        self.required_scopes: frozenset[str] = frozenset(scopes)
        self.tag = tag

    def _applies(self, context: AuthContext) -> bool:
        return self.tag is None or self.tag in context.component.tags

    def __call__(self, context: AuthContext) -> bool:
        """Return whether the token has all of the scopes."""
        if not self._applies(context):
            return True
        return context.token is not None and self.required_scopes.issubset(context.token.scopes)

    def missing_scopes(self, context: AuthContext) -> set[str]:
        """Return the scopes that the token lacks; none without a token, because a caller needs a token first."""
        if context.token is None or not self._applies(context):
            return set()
        return set(self.required_scopes.difference(context.token.scopes))


class RoleCheck:
    """A check that needs roles, which no client can request, so that it can't say what a token lacks.

    Args:
        roles: The roles.
        extract: Returns the caller's roles from the claims of the token.
    """

    def __init__(self, roles: Iterable[str], extract: Callable[[dict[str, Any]], Iterable[str]]) -> None:
        self.required_roles: frozenset[str] = frozenset(roles)
        self._extract = extract

    def __call__(self, context: AuthContext) -> bool:
        """Return whether the caller has all of the roles; False if the claims do not have the expected form."""
        if context.token is None:
            return False
        try:
            roles = self._extract(context.token.claims)
            granted = {roles} if isinstance(roles, str) else set(roles)
        except (IndexError, KeyError, TypeError):
            return False
        return self.required_roles.issubset(granted)


@public("funcmcp.compat")
def require_scopes(*scopes: str) -> AuthCheck:
    """Return a check that the caller's token has all of these scopes."""
    return ScopeCheck(scopes)


@public("funcmcp.compat")
def require_roles(*roles: str, extract: Callable[[dict[str, Any]], Iterable[str]]) -> AuthCheck:
    """Return a check that the caller has all of these roles.

    Args:
        roles: The roles.
        extract: Returns the caller's roles from the claims of the token, such as ``lambda claims: claims["roles"]``. A
            text is one role. A caller whose token lacks the claim is refused.

    Raises:
        ValueError: There are no roles.
    """
    if not roles:
        raise ValueError("require_roles needs at least one role. Without a role it would accept every caller.")
    return RoleCheck(roles, extract)


@public("funcmcp.compat")
def restrict_tag(tag: str, *, scopes: list[str]) -> AuthCheck:
    """Return a check that the caller's token has all of these scopes, for components with a tag."""
    return ScopeCheck(scopes, tag)


@public("funcmcp.compat")
async def run_auth_checks(checks: Checks, ctx: AuthContext) -> bool:
    """Return whether all checks pass. They are called in order, up to the first one that refuses.

    Args:
        checks: One check or a list.
        ctx: The caller's token and the component.

    Raises:
        AuthorizationError: A check raised it. Any other exception of a check is logged, and refuses.
    """
    for check in _listed(checks):
        if not await _passes(check, ctx):
            return False
    return True


class Verdict(NamedTuple):
    """What checks say about a caller.

    Attributes:
        passes: Whether the caller may use the component.
        missing_scopes: The scopes without which the token fails, if nothing else refuses the caller.
    """

    passes: bool
    missing_scopes: list[str]


async def run_auth_checks_with_shortfall(checks: Checks, ctx: AuthContext) -> Verdict:
    """Return whether all checks pass, and if not, which scopes the token lacks.

    Scopes are named only if all other checks pass: a caller that is refused for another reason must not learn them.

    Raises:
        AuthorizationError: A check raised it.
    """
    passes, missing = True, set[str]()
    for check in _listed(checks):
        if await _passes(check, ctx):
            continue
        if not isinstance(check, ScopeCheck):
            return Verdict(passes=False, missing_scopes=[])
        passes = False
        missing |= check.missing_scopes(ctx)
    return Verdict(passes, sorted(missing))


def scope_requirements(checks: Checks, ctx: AuthContext) -> list[str] | None:
    """Return the scopes that a token lacks for checks, without calling them; None if one of them needs more."""
    missing: set[str] = set()
    for check in _listed(checks):
        if not isinstance(check, ScopeCheck):
            return None
        missing |= check.missing_scopes(ctx)
    return sorted(missing)


def _listed(checks: Checks) -> list[AuthCheck]:
    return list(checks) if isinstance(checks, list | tuple) else [checks]


async def _passes(check: AuthCheck, context: AuthContext) -> bool:
    try:
        answer = check(context)
        if inspect.isawaitable(answer):
            answer = await answer
    except AuthorizationError:
        raise
    except Exception:
        name = getattr(check, "__name__", type(check).__name__)
        _logger.warning("The check %s of a component failed, so the caller is refused.", name, exc_info=True)
        return False
    return bool(answer)


is_in_memory: ContextVar[bool] = ContextVar("is_in_memory", default=False)
"""Whether the request is of FastMCP's or the SDK's client in this process, which these do not trust as on stdio."""


class Caller(NamedTuple):
    """The caller of a request, as checks see it.

    Attributes:
        is_trusted: Whether nothing is checked: the user of the process, on stdio.
        token: The caller's token; None without credentials.
    """

    is_trusted: bool
    token: AccessToken | None


def caller_of(request: RequestContext) -> Caller:
    """Return the caller of a request. A direct call within a request has the caller of that request."""
    if request.by_user:
        return Caller(is_trusted=not is_in_memory.get(), token=None)
    if request.by_author:
        return current_caller()
    return Caller(is_trusted=False, token=None if request.principal is None else access_token_of(request.principal))


def current_caller() -> Caller:
    """Return the caller of the request that runs now; one without a token outside of requests."""
    context = context_variable.get()
    if context is None:
        return Caller(is_trusted=False, token=None)
    try:
        return Caller(is_trusted=context.is_of_user and not is_in_memory.get(), token=context.access_token)
    except OutsideRequestError:  # a context that was made by hand
        return Caller(is_trusted=False, token=None)


class Condition:
    """The checks of a component as a condition on which callers have it.

    They must pass with the tags that its provider gives it, and with those that transforms of servers give it, so that
    no transform takes a rule away.

    Args:
        component: The component.
        tags: The tags that its provider gives it; None for its own.
    """

    def __init__(self, component: Any, tags: frozenset[str] | None = None) -> None:
        self._component = component
        self._tags = tags

    def with_tags(self, tags: frozenset[str]) -> Condition:
        """Return the condition of the component with the tags that its provider gives it."""
        return Condition(self._component, tags)

    async def __call__(self, feature: Feature, request: RequestContext) -> bool:
        """Return whether the caller of a request has the feature of the component."""
        return await self.allows(feature, caller_of(request))

    async def allows(self, feature: Feature, caller: Caller) -> bool:
        """Return whether a caller has the feature of the component."""
        if caller.is_trusted:
            return True
        original = frozenset(self._component.tags) if self._tags is None else self._tags
        for tags in {original, feature.tags}:
            context = AuthContext(caller.token, _with_tags(self._component, tags))
            try:
                passes = await run_auth_checks(self._component.auth, context)
            except AuthorizationError:
                return False
            if not passes:
                return False
        return True


async def allows(feature: Feature) -> bool:
    """Return whether the caller of the request that runs now has a feature; one without a token outside of requests."""
    allows_caller = getattr(feature.shown_if, "allows", None)
    return allows_caller is None or bool(await allows_caller(feature, current_caller()))


def condition_of(component: Any) -> ShownIf | None:
    """Return the condition on which callers have a component; None if every caller has it.

    Raises:
        TypeError: ``auth`` of the component is neither a check nor a list of checks.
    """
    if component.auth is None:
        return None
    for check in _listed(component.auth):
        if isinstance(check, Mapping | str) or not callable(check):
            raise TypeError(
                f"auth of the {component.kind} {component.name} must be a function such as require_scopes(...), or a "
                f"list of them, not {type(check).__name__}."
            )
    return Condition(component)


def _with_tags(component: Any, tags: frozenset[str]) -> Any:
    """Return a component with the tags that its feature has after all transforms."""
    if component.tags == tags:
        return component
    changed = copy(component)
    changed.options = {**component.options, "tags": set(tags)}
    return changed
