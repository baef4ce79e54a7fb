"""The certificate authorities that requests to identity providers trust: those of the system, and those of a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ssl import SSLContext


def checked_ca_file(option: str, path: str | os.PathLike[str] | None) -> str | None:
    """Return the path of a file with certificate authorities; None without one.

    Args:
        option: The name of the option in error messages.
        path: The path of a PEM file.

    Raises:
        ValueError: The file can't be read, or has no certificates.
    """
    if path is None:
        return None
    import ssl  # noqa: PLC0415 - slow to load, and few servers have such a file

    name = os.fspath(path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=name)
    except OSError as error:  # an ssl.SSLError is one, too
        reason = "it has no certificates in PEM format" if isinstance(error, ssl.SSLError) else error.strerror
        raise ValueError(f"{option} can't be used: {name!r}: {reason}.") from error
    return name


def tls_context(ca_file: str | None) -> SSLContext:
    """Return what checks the certificates of servers: by the authorities of the system, and those of a file."""
    import httpx2  # noqa: PLC0415 - slow to load, and needed with the first request

    context = httpx2.create_ssl_context()
    if ca_file is not None:
        context.load_verify_locations(cafile=ca_file)
    return context
