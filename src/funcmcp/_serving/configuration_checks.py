"""Checks of the configuration of a server when it begins: what is refused, and what the log warns of."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from funcmcp._auth.access import PRINCIPALS_ONLY
from funcmcp._server.log import logger, quote
from funcmcp._serving.environment import TASK_CONCURRENCY_VARIABLE, is_on_azure, may_be_one_of_several
from funcmcp._state.keys import VARIABLE
from funcmcp._state.sessions.signed import SignedSessions

CHECK_DELAY = 1.0
"""Seconds after the start until the identity provider is looked at, so that the first requests are answered before."""

if TYPE_CHECKING:
    from funcmcp._oauth_proxy.proxy import OAuthProxy
    from funcmcp._server.dispatch import Server
    from funcmcp._server.tasks.service import Tasks
    from funcmcp._state.key_values import StateStore
    from funcmcp._state.sessions.store import SessionStore
    from funcmcp._state.uploads import UploadStore


def warn_of_restrictions_without_auth(server: Server) -> None:
    """Warn of features that only some callers may use, if the server does not know its callers."""
    if server.guard is None and any(feature.access != PRINCIPALS_ONLY for feature in server.catalog.features()):
        logger.warning(
            "%s has features with allow_anonymous, scopes or authorize, which have no effect without auth: "
            "every caller may use every feature.",
            server.options.name,
        )


def warn_of_missing_lifespan(name: str) -> None:
    """Warn that nothing closes what the server has opened."""
    logger.warning(
        "%s is served without its lifespan, so its services with scope='app' and its connections are not closed at the "
        "end. Enter `async with mcp.lifespan():` in the lifespan of the application around it; see "
        "docs/guides/transports.md.",
        name,
    )


def check_uploads(name: str, uploads: UploadStore) -> None:
    """Raise RuntimeError if other processes can't find the files that this one receives."""
    if not uploads.is_shared and (may_be_one_of_several() or is_on_azure()):
        raise RuntimeError(
            f"{name} keeps uploads in a temporary folder of this process, so other processes would not find them. "
            "Use a folder that all of them share: HTTPOptions(uploads=Uploads(folder=...)); see docs/guides/files.md."
        )


def check_proxy(name: str, proxy: OAuthProxy) -> None:
    """Log what an operator has to know of the sign-in; raise RuntimeError if other processes can't continue it."""
    if not proxy.has_shared_keys and (may_be_one_of_several() or is_on_azure()):
        raise RuntimeError(
            f"{name} has an OAuthProxy and a random key, so a sign-in that one process begins would fail in "
            f"the next one. Set {VARIABLE} to the same value for all processes; see docs/guides/scaling.md."
        )
    if proxy.store is not None and not proxy.store.shared and (may_be_one_of_several() or is_on_azure()):
        raise RuntimeError(
            f"{name} has an OAuthProxy whose store is the memory of this process, so other processes would "
            "not know its sign-ins. Use a store that all of them reach; see docs/guides/sign-in.md."
        )
    if proxy.has_registration:
        logger.info("%s signs users in. Redirect URI to register at the identity provider: %s.", name, proxy.callback)
    if proxy.store is None:
        logger.info(
            "The OAuthProxy of %s has no store, so a sign-in is renewed for %.3g hours at most.",
            name,
            proxy.refresh_seconds / 3600,
        )
    if not proxy.has_lasting_keys:
        logger.warning(
            "%s is not set, so the users of %s must sign in again after every restart. Set it to keep their sign-ins.",
            VARIABLE,
            name,
        )


async def check_provider(name: str, proxy: OAuthProxy) -> None:
    """Log what is wrong with the identity provider of the sign-in. No failure of the check ends the server."""
    await asyncio.sleep(CHECK_DELAY)
    try:
        await proxy.check()
    except Exception as error:  # noqa: BLE001 - an upstream of the author may raise anything
        logger.warning("%s can't check the identity provider of its OAuthProxy: %s.", name, quote(str(error), 300))


def warn_of_idle_tasks(server_name: str, tasks: Tasks) -> None:
    """Warn that no process runs some of the tasks of this server, or that it has no tasks of a queue."""
    served, existing = tasks.queues, set(tasks.queues_of_tools.values())
    if served is not None and tasks.has_tools:
        for name in sorted(served - existing):
            logger.warning(
                "%s runs the tasks of the queue %s, and none of its tools has this queue. Their queues: %s.",
                server_name,
                name,
                ", ".join(sorted(existing)),
            )
        idle = existing - served
        if idle and not tasks.store.shared:
            logger.warning(
                "%s stores tasks in this process's memory, and this process does not run those of some queues: "
                "they never end (%s).",
                server_name,
                ", ".join(sorted(idle)),
            )
    if tasks.has_tools and not tasks.store.shared and not tasks.concurrency:
        logger.warning(
            "%s stores tasks in this process's memory, and this process runs none: its tasks never end. Unset %s, "
            "or use a store that other processes reach; see docs/guides/running-tasks.md.",
            server_name,
            TASK_CONCURRENCY_VARIABLE,
        )


def warn_of_state_in_memory(name: str) -> None:
    """Warn that the values of a caller are in the memory of the process that its request reaches."""
    logger.warning(
        "%s may be served by several processes, and stores the state of its callers in the memory of each: a caller "
        "finds only what the process has stored that its request reaches. Write MCPServer(state=) with a store such as "
        "funcmcp.redis.RedisState; see docs/guides/state.md.",
        name,
    )


def warn_of_metrics_path(name: str, path: str) -> None:
    """Warn that a path shows the metrics of one process."""
    logger.warning(
        "%s may be served by several processes: a request to %s gets the metrics of one of them. To have those of all, "
        "send them to an OpenTelemetry collector with mcp.measure(); see docs/guides/telemetry.md.",
        name,
        path,
    )


def warn_of_random_key(
    server: Server,
    store: SessionStore,
    state: StateStore | None,
    uploads: UploadStore | None,
    reason: str,
    *,
    has_nonces: bool,
) -> bool:
    """Warn if something is sealed with a key that no other process has, and return whether it is."""
    sealed = _sealed_things(server, store, state, uploads)
    if has_nonces:
        sealed.append("nonces")
    if server.keys.shared or not sealed:
        return False
    logger.warning(
        "%s has a random key, and %s: its %s can only be used by this process. "
        "To share a key with other processes and later starts, set %s.",
        server.options.name,
        reason,
        " and its ".join(sealed),
        VARIABLE,
    )
    return True


def _sealed_things(
    server: Server, store: SessionStore, state: StateStore | None, uploads: UploadStore | None
) -> list[str]:
    """Return the names of what is sealed with the server's keys."""
    eras = {revision.per_request for revision in server.revisions.values()}
    sealed = []
    if isinstance(store, SignedSessions) and False in eras:
        sealed.append("sessions")
    if True in eras and any(feature.interactive for feature in server.catalog.features()):
        sealed.append("questions to clients")
    if state is not None and state.shared:
        sealed.append("state")
    if uploads is not None and uploads.options.tool_name is not None and uploads.is_shared:
        sealed.append("addresses for uploads")
    return sealed
