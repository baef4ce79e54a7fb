"""What goes wrong for a person at the command line, in one line that says what to do."""

from __future__ import annotations


class Failure(Exception):
    """The command can't do what it was asked.

    Args:
        message: one line for people: what is wrong, and what to do.
    """
