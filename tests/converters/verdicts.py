"""Whether each tool is usable in each client, and why not.

A tool is usable if the client declares it for its API without a fault, if the declaration loses no argument, type or
value, if the API accepts the declaration, and if a call succeeds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.converters.apis import refusals
from tests.converters.known_faults import FAULTS
from tests.converters.losses import losses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.converters.known_faults import Fault
    from tests.converters.libraries import Library
    from tests.converters.sources import Served


@dataclass(frozen=True)
class Problem:
    """Why a tool is not usable in a client.

    Attributes:
        library: The client's name and version.
        api: The API that the tool is declared for; "" for a client without one.
        group: The group of the tool's server.
        tool: The tool's name; "resource" or "prompt" of the server in angle brackets.
        text: What went wrong.
    """

    library: str
    api: str
    group: str
    tool: str
    text: str

    @property
    def is_about_a_tool(self) -> bool:
        return not self.tool.startswith("<")

    @property
    def fault(self) -> Fault | None:
        """The known fault that explains it."""
        for fault in FAULTS:
            if (
                self.library.startswith(fault.library)
                and fault.api in (None, self.api)
                and re.search(fault.pattern, f"{self.group} {self.tool} {self.text}")
            ):
                return fault
        return None

    def __str__(self) -> str:
        return f"{self.library} ({self.api}): {self.group} {self.tool}: {self.text}"


def problems(library: Library, served: Served, played: dict[str, Any]) -> Iterator[Problem]:
    """Yield all problems of a client with one server."""
    group = served.source.group
    absent = {"fault": played.get("fault", "absent"), "line": played.get("line", "")}
    for api in library.apis:
        declared = played["declared"].get(api, {})
        for name, tool in served.tools.items():
            for text in _declaration_problems(api, tool, declared.get(name, absent)):
                yield Problem(library.name, api, group, name, text)
        for name, call in played["calls"].items():
            if "fault" in call:
                yield Problem(library.name, api, group, name, f"called: {_fault_text(call)}")
    for name in ("resource", "prompt"):
        if "fault" in played.get(name, {}):
            yield Problem(library.name, "", group, f"<{name}>", _fault_text(played[name]))


def _declaration_problems(api: str, tool: dict[str, Any], declared: dict[str, Any]) -> Iterator[str]:
    if "fault" in declared:
        yield _fault_text(declared)
        return
    declaration = declared["declaration"]
    parameters = declaration.get("parameters", {"type": "object"})
    yield from losses(tool["inputSchema"], parameters)
    is_loose = api == "openai strict" and not declaration.get("strict")
    yield from refusals("openai" if is_loose else api, declaration)


def _fault_text(fault: dict[str, Any]) -> str:
    return f"{fault['fault']} ({fault['line']})" if fault["line"] else str(fault["fault"])
