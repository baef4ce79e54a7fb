"""Records that are sealed or stored: JSON objects with a version, which other versions of funcmcp read as well.

How it works: in a rolling deployment, a newer and an older process read each other's records for as long as these are
valid. A version that adds a member reads a record without it as one with a default. A version that writes a record
again keeps the members that it does not know. Only a change that older versions must not read gets another number in
``v``. A record that can't be read is treated as one that does not exist or has expired; it is never a fault of the
server. docs/development/architecture.md lists all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from funcmcp._protocol.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    Value: TypeAlias = dict[str, Any] | list[Any] | None
    Extra: TypeAlias = Mapping[Any, Any]  # a pattern such as `**extra` has no narrower type

VERSION = 1
"""The value of ``v`` in a record that this version reads and writes."""

BOUND_VERSION = 2
"""The value of ``v`` in a record of a sign-in that is bound to a key of the client (``jkt``): older versions, which
would ignore the key, can't read it."""


def to_record(members: Mapping[str, Any], extra: Extra, version: int = VERSION) -> bytes:
    """Return the JSON text of a record.

    Args:
        members: The members that this version knows.
        extra: The members that a later version has added.
        version: The value of ``v``.
    """
    return encode({**extra, **members, "v": version})


def with_key(members: dict[str, Any], jkt: str | None) -> tuple[dict[str, Any], int]:
    """Return the members and the version of a record that is bound to a key; as they are if the key is None."""
    return (members, VERSION) if jkt is None else ({**members, "jkt": jkt}, BOUND_VERSION)


def value_of(payload: bytes | None) -> Value:
    """Return the object or the array in a JSON text; None if there is no text, or it is not valid."""
    if payload is None:
        return None
    try:
        value = decode(payload)
    except ValueError:
        return None
    return value if isinstance(value, dict | list) else None


def are_texts(values: list[Any]) -> bool:
    """Return whether all members of a list are texts."""
    return all(isinstance(value, str) for value in values)
