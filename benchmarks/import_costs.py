"""Where the time goes that a server needs beyond the floor to be imported: by kind of work, and by module.

`import_costs.py` imports the floor's server and then funcmcp's in separate processes, one after the other, and prints
medians as Markdown. What the floor has loaded already, such as pydantic, does not count. The clock itself takes some
per cent, so the sum is larger than the difference of `--only imports`.
"""

from __future__ import annotations

import collections
import importlib
import importlib.machinery
import json
import os
import re
import subprocess
import sys
import typing
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

HERE = Path(__file__).parent
_RUNS = 15
_MOST_MODULES = 25
_KINDS = {
    "find": "find files (stat, list folders)",
    "load": "read and unmarshal code",
    "named tuples": "create named tuples",
    "classes": "create other classes, with their decorators",
    "expressions": "compile regular expressions",
    "rest": "other instructions at the level of modules",
}


class Clock:
    """The time of nested work: what runs inside of other work counts for itself only."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = collections.defaultdict(float)
        self._open: list[float] = []

    def call(self, name: str, function: Any, *args: Any, **named: Any) -> Any:
        """Call a function, and count its time for a name."""
        self._open.append(0.0)
        start = perf_counter()
        try:
            return function(*args, **named)
        finally:
            took = perf_counter() - start
            self.seconds[name] += took - self._open.pop()
            if self._open:
                self._open[-1] += took

    def around(self, name: str, function: Any) -> Any:
        """Return a function that does the same, and whose time counts for a name."""
        return lambda *args, **named: self.call(name, function, *args, **named)


def measure() -> dict[str, Any]:
    """Import funcmcp's server in this process, after the floor's."""
    sys.path.insert(0, str(HERE / "servers"))
    importlib.import_module("floor_server")
    before, clock = set(sys.modules), Clock()
    loader: Any = importlib.machinery.SourceFileLoader
    finder: Any = importlib.machinery.PathFinder
    get_code, find_spec = loader.get_code, finder.find_spec

    def exec_module(self: Any, module: Any) -> None:
        code = clock.call("load", get_code, self, module.__name__)
        clock.call(f"rest:{module.__name__}", exec, code, module.__dict__)

    loader.exec_module = exec_module
    finder.find_spec = classmethod(lambda _cls, *args: clock.call("find", find_spec, *args))
    tuples: Any = typing.NamedTupleMeta  # type: ignore[attr-defined]
    tuples.__new__ = clock.around("named tuples", tuples.__new__)
    re.compile = clock.around("expressions", re.compile)
    builtins: Any = importlib.import_module("builtins")
    builtins.__build_class__ = clock.around("classes", builtins.__build_class__)
    importlib.import_module("funcmcp_server")
    modules = {name[5:]: seconds for name, seconds in clock.seconds.items() if name.startswith("rest:")}
    kinds = {kind: clock.seconds[kind] for kind in _KINDS if kind != "rest"}
    kinds["rest"] = sum(modules.values())
    return {"kinds": kinds, "modules": modules, "count": len(set(sys.modules) - before)}


def main() -> None:
    """Measure in processes, and print the tables."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, __file__, "--once"]
    outputs = [
        subprocess.run(command, check=True, capture_output=True, env=environment).stdout for _ in range(_RUNS + 1)
    ]
    runs = [json.loads(output) for output in outputs[1:]]  # the first one has compiled the files
    print(f"Import of {runs[0]['count']} modules, Python {sys.version.split()[0]}, medians of {_RUNS} processes\n")
    print("| work | ms |\n|---|---|")
    for kind, text in _KINDS.items():
        print(f"| {text} | {median(run['kinds'][kind] for run in runs) * 1000:.1f} |")
    print(f"| all | {median(sum(run['kinds'].values()) for run in runs) * 1000:.1f} |")
    print("\n| module | other instructions, ms |\n|---|---|")
    costs = {name: median(run["modules"][name] for run in runs) * 1000 for name in runs[0]["modules"]}
    for name, cost in sorted(costs.items(), key=lambda item: -item[1])[:_MOST_MODULES]:
        print(f"| {name} | {cost:.2f} |")


if __name__ == "__main__":
    if "--once" in sys.argv:
        print(json.dumps(measure()))
    else:
        main()
