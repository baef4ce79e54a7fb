"""The entry point of the ``funcmcp`` command."""

from __future__ import annotations

import sys

from funcmcp._cli.failure import Failure

_EXTRA_LIBRARIES = {"httpx2", "rich", "tomlkit", "typer", "uvicorn", "watchfiles"}
"""The libraries that the distribution funcmcp requires and funcmcp-slim does not."""


def main() -> None:
    """Run the command. A failure is one line on stderr, and exit code 1."""
    try:
        _check_distributions()
        import funcmcp._cli.client_commands  # noqa: PLC0415 - it adds its commands to the app
        import funcmcp._cli.diff.command  # noqa: PLC0415 - as above
        import funcmcp._cli.host  # noqa: PLC0415 - as above
        import funcmcp._cli.install.command  # noqa: PLC0415 - as above
        import funcmcp._cli.install.discover  # noqa: PLC0415 - as above
        import funcmcp._cli.migrate.command  # noqa: PLC0415 - as above
        import funcmcp._cli.tasks  # noqa: PLC0415 - as above
        import funcmcp._cli.worker  # noqa: F401, PLC0415 - as above
        from funcmcp._cli.commands import app  # noqa: PLC0415 - it cannot be imported without the extra

        app(prog_name="funcmcp")
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in _EXTRA_LIBRARIES:
            raise
        sys.exit(f"{library} is not installed. The command line needs: pip install funcmcp")
    except Failure as failure:
        from funcmcp._cli.output import write_line  # noqa: PLC0415 - as above

        write_line(failure, error=True)
        sys.exit(1)


def _check_distributions() -> None:
    """Raise Failure if the command and the library have different versions.

    pip installs another version of one of them with a warning only.
    """
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - `python -m` alone needs it

    try:
        command, library = version("funcmcp"), version("funcmcp-slim")
    except PackageNotFoundError:  # the library without the command, or an archive of both
        return
    if command != library:
        raise Failure(
            f"funcmcp {command} and funcmcp-slim {library} are installed. They need the same version: "
            f"pip install funcmcp=={library}"
        )


if __name__ == "__main__":
    main()
