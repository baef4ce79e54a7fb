"""Files are replaced in one step, so that a full disk or a killed process leaves the earlier one unchanged."""

from __future__ import annotations

import secrets
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def replacement_of(file: Path) -> Iterator[Path]:
    """Yield the path for the new contents of a file, which replace it at the end. After an error nothing has changed.

    A link to a file stays a link. A device or a FIFO is written itself.

    Raises:
        OSError: The file cannot be replaced.
    """
    if file.exists() and not file.is_file():
        yield file
        return
    target = file.resolve()
    draft = target.with_name(f".funcmcp-{secrets.token_hex(8)}.tmp")
    try:
        yield draft
        if target.exists():
            draft.chmod(stat.S_IMODE(target.stat().st_mode))
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)  # after a success it has the file's name
