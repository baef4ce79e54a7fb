"""The storms: for each, where its tasks are kept, and what fails meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.cluster.storms import faults
from tests.cluster.storms.settings import LEASE

if TYPE_CHECKING:
    from tests.cluster.storms.faults import Fault


@dataclass(frozen=True)
class Storm:
    """A storm.

    Attributes:
        key: Its name for SOAK_STORM.
        name: What it does, for the table.
        store: Where the tasks are.
        of_processes: What happens to each instance, one after the other and by chance.
        of_store: What happens to the store.
        pause: Seconds between two faults, at least and at most.
        replies: Connections to Redis are cut after one of their first so many replies; 0 for none.
        slow: The part of the replies of Redis that come late.
        reset: Seconds after which all connections to Redis are reset, again and again; 0 for never.
        seconds: How long the runs of the tools take.
        kept: Tasks of one caller that are kept.
        lease: Seconds after which another process may take a task whose process does not answer.
        timeout: Seconds that a step at Redis may take.
        drain: Seconds that a process has for its tasks after SIGTERM.
        proxied: Whether callers send their requests to HAProxy, and none may fail.
        callers: How many callers play calls at once.
    """

    key: str
    name: str
    store: str
    of_processes: tuple[Fault, ...] = ()
    of_store: tuple[Fault, ...] = ()
    pause: tuple[float, float] = (1.0, 8.0)
    replies: int = 0
    slow: float = 0.0
    reset: float = 0.0
    seconds: tuple[float, float] = (0.2, 2.0)
    kept: int = 100_000
    lease: float = LEASE
    timeout: float = 1.0
    drain: int = 7
    proxied: bool = False
    callers: int = 120

    @property
    def loses_claims(self) -> bool:
        """Whether a claim may lapse before its tool begins: the process, or the store, is away for so long."""
        away = (faults.kill_store, faults.stop_store, faults.suspend_store)
        return bool(self.of_processes) or any(fault in away for fault in self.of_store)

    def variables(self) -> dict[str, str]:
        """Return the variables of the server's environment."""
        return {"KEPT": str(self.kept), "LEASE": str(self.lease), "TIMEOUT": str(self.timeout)}


_PROCESSES = (faults.kill, faults.kill, faults.suspend, faults.restart)
_STORE = (faults.kill_store, faults.kill_store, faults.suspend_store)

_ALL = (
    Storm("kill", "processes killed and suspended", "redis", _PROCESSES),
    Storm("redis", "processes killed and suspended, Redis killed (AOF) and suspended", "redis", _PROCESSES, _STORE),
    Storm(
        "network",
        "replies slow and lost, connections reset, processes killed",
        "redis",
        (faults.kill, faults.suspend),
        pause=(5.0, 20.0),
        replies=24,
        slow=0.01,
        reset=7.0,
        lease=15.0,
    ),
    Storm("cuts", "each reply of each script lost", "redis", replies=24, seconds=(0.05, 0.5), kept=200, lease=15.0),
    Storm("full", "Redis full (noeviction)", "redis", of_store=(faults.fill_redis,)),
    Storm("sqlite", "processes killed and suspended", "sqlite", _PROCESSES),
    Storm("disk", "disk full", "sqlite on a small disk", of_store=(faults.fill_disk,)),
    Storm("postgres", "processes and PostgreSQL killed and suspended", "postgres", _PROCESSES, _STORE),
    Storm(
        "postgres-cuts",
        "connections ended at any moment",
        "postgres",
        of_store=(faults.cut_postgres,),
        pause=(0.0, 0.1),
        seconds=(0.05, 0.5),
        lease=15.0,
    ),
    Storm(
        "azure",
        "processes killed and suspended, Azurite stopped and suspended",
        "azure",
        _PROCESSES,
        (faults.stop_store, faults.suspend_store),
        pause=(10.0, 30.0),
        callers=12,
    ),
    Storm(
        "rolling",
        "rolling restart behind HAProxy, tasks of 30 seconds",
        "redis",
        of_store=(faults.roll,),
        seconds=(30.0, 30.0),
        lease=15.0,
        timeout=30.0,
        drain=60,
        proxied=True,
    ),
)
STORMS = {storm.key: storm for storm in _ALL}
