"""Changes the imports of a server: those of its own library become imports of `funcmcp.compat`.

How it works: `install` puts a finder in front of the others. The modules that servers import their framework from
become empty modules with the names of `funcmcp.compat`, as if their author had written ``from funcmcp.compat import X``
for each ``from fastmcp.server import X``. Other modules of the official SDK, such as `mcp.types`, are the real ones.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any

_FRAMEWORKS = ("fastmcp", "mcp.server.fastmcp", "mcp.server.mcpserver", "mcp.server.elicitation")


class ChangedImports(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of the frameworks."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.rpartition(".")[2][:1].isupper():
            return None  # `from module import Class` of a class that funcmcp.compat does not have
        if not any(fullname == name or fullname.startswith(f"{name}.") for name in _FRAMEWORKS):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _CompatModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: the names are looked up when they are used."""


class _CompatModule(types.ModuleType):
    __version__ = "4.1.2"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module("funcmcp.compat"), name)


def install() -> None:
    """Change the imports of the modules that are imported from now on."""
    sys.meta_path.insert(0, ChangedImports())
