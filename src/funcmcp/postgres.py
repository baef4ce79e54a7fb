"""State that all instances of a server share in PostgreSQL. Needs ``pip install "funcmcp[postgres]"``.

Tasks in PostgreSQL are `funcmcp.tasks.PostgresTasks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from funcmcp._objects.public_names import lazy_names

if TYPE_CHECKING:
    from funcmcp._adapters.postgres.key_values import PostgresSignIns, PostgresState

__all__ = ["PostgresSignIns", "PostgresState"]

_HOMES = {"_adapters.postgres.key_values": ["PostgresSignIns", "PostgresState"]}

if not TYPE_CHECKING:  # a type checker reports a name that the module does not have
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
