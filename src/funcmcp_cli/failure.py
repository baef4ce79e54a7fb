"""The error of a command."""

from __future__ import annotations


class Failure(Exception):
    """A command cannot be carried out. The command line prints the message and exits with `exit_code`.

    Args:
        message: One line that says what is wrong and what to do.
    """

    exit_code = 1


class UsageFailure(Failure):
    """An option or an environment variable of a command is not valid. The exit code is 2."""

    exit_code = 2
