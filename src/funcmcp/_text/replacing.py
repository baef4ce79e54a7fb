"""Files are replaced in one step, so that a full disk or a killed process leaves the earlier one unchanged."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def replacement_of(file: Path, mode: int | None = None) -> Iterator[Path]:
    """Yield the path for the new contents of a file, which replace it at the end. After an error nothing has changed.

    A link to a file stays a link. A device or a FIFO is written itself.

    Args:
        file: The file.
        mode: Who may read the new contents. None keeps the mode of the earlier file; until the end, only the owner can
            read the new contents then. A new file gets the usual mode.

    Raises:
        OSError: The file cannot be replaced.
    """
    if file.exists() and not file.is_file():
        yield file
        return
    target = file.resolve()
    draft = target.with_name(f".funcmcp-{os.urandom(8).hex()}.tmp")
    earlier_mode = stat.S_IMODE(target.stat().st_mode) if mode is None and target.exists() else None
    initial_mode = 0o666 if mode is None else mode
    if earlier_mode is not None:
        initial_mode = 0o600
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, initial_mode))
        yield draft
        if earlier_mode is not None:
            draft.chmod(earlier_mode)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)  # after a success it has the file's name
