"""Runs tests in Pyodide, which has one thread and no processes: tests that need more are skipped.

How it works: a coroutine runs on the event loop of Pyodide, with `run_sync`. A thread, a process, or a package without
a build for WebAssembly is a skip where it is asked for. A skip is not an `Exception`, so funcmcp's code does not catch
it.
"""

from __future__ import annotations

import asyncio
import importlib.abc
import inspect
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGES = {"cryptography", "httptools", "httpx2_jsfetch", "jsonschema_rs", "psutil", "rpds", "uvloop"}
"""Packages without a build for WebAssembly, and what httpx2 needs only there."""

OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-p", "no:xdist", "-p", "no:cov", "-p", "no:timeout"]
SETTINGS = ["-o", "addopts=--import-mode=importlib", "-o", "filterwarnings=error::DeprecationWarning", "-rfE"]


def _skip(reason: str) -> NoReturn:
    pytest.skip(reason, allow_module_level=True)


class Missing(importlib.abc.MetaPathFinder):
    """Skips what imports one of the missing packages."""

    def find_spec(self, name: str, _path: object, _target: object = None) -> None:
        """Skip the test, or the module of tests, that imports a missing package."""
        if name.partition(".")[0] in PACKAGES:
            _skip(f"{name} has no build for WebAssembly.")


class Coroutines:
    """Runs the tests that are coroutines."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Run a coroutine to its end."""
        from pyodide.ffi import run_sync

        if not inspect.iscoroutinefunction(pyfuncitem.obj):
            return None
        names = pyfuncitem._fixtureinfo.argnames
        run_sync(asyncio.ensure_future(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})))
        return True


def main(arguments: Sequence[str]) -> int:
    """Run tests, and return the exit code."""

    def no_thread(*_: Any, **__: Any) -> NoReturn:
        _skip("There are no threads.")

    def no_process(*_: Any, **__: Any) -> NoReturn:
        _skip("There are no processes.")

    patches: Any = [(threading.Thread, "start", no_thread), (subprocess.Popen, "__init__", no_process)]
    for owner, name, function in patches:
        setattr(owner, name, function)
    sys.meta_path.insert(0, Missing())
    sys.dont_write_bytecode = True
    os.chdir("/repository")
    return int(pytest.main([*OPTIONS, *SETTINGS, *arguments], plugins=[Coroutines()]))
