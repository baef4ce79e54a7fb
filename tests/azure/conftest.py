"""Fixtures of the tests of function apps."""

from __future__ import annotations

from tests.azure.signals import restore_sigterm

__all__ = ["restore_sigterm"]
