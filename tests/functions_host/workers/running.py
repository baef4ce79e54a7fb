"""The processes of a pool of workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from funcmcp_host.workers.supervised import WorkerPool


def running_pids(pool: WorkerPool) -> list[int]:
    """Return the ids of the processes that run."""
    return [worker.pid for worker in pool._workers if worker.pid is not None]
