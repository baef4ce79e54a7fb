"""The error of a command."""

from __future__ import annotations


class Failure(Exception):
    """A command cannot be carried out. The command line prints the message and exits with code 1.

    Args:
        message: One line that says what is wrong and what to do.
    """
