"""The entry point of the ``funcmcp`` command."""

from __future__ import annotations

import sys

from funcmcp.cli.failure import Failure

_OF_THE_EXTRA = {"httpx2", "rich", "typer", "uvicorn", "watchfiles"}


def main() -> None:
    """Run the command; what goes wrong is one line on stderr and exit code 1."""
    try:
        import funcmcp.cli.host  # noqa: F401, PLC0415 - adds its command
        from funcmcp.cli.commands import app  # noqa: PLC0415 - without the extra it can't be imported

        app()
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in _OF_THE_EXTRA:
            raise
        sys.exit(f'{library} is not installed. The command line needs: pip install "funcmcp[cli]"')
    except Failure as failure:
        from funcmcp.cli.output import write_line  # noqa: PLC0415 - as above

        write_line(failure, error=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
