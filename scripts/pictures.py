"""Draw the pictures of the command line in docs/images from real output. Run it with ``make pictures``.

`tests/docs/test_pictures.py` compares the files with what this draws.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "images"
PAGE = ROOT / "docs" / "tutorial" / "first-server.md"
WIDTH = 92
COMMANDS = {
    "inspect": ["inspect server.py"],
    "call": ["call server.py find_dish name=len", 'call server.py order dish="Lentil soup" portions=50'],
    "doctor": ["new kitchen-cloud", "doctor kitchen-cloud"],
}
"""The commands in each picture."""

# Rich's own format loads a font from the network.
_SVG = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def draw() -> dict[str, str]:
    """Return the text of each picture by the name of its file."""
    server = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[-1]
    pictures = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "server.py").write_text(server, encoding="utf-8")
        for picture, commands in COMMANDS.items():
            console = Console(
                record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
            )
            for command in commands:
                console.print(Text.assemble(("$ ", "green"), f"funcmcp {command}"))
                console.print(Text.from_ansi(_output(folder, command).rstrip("\n")))
            svg = console.export_svg(
                title="", theme=MONOKAI, code_format=_SVG, unique_id=picture, font_aspect_ratio=0.6
            )
            pictures[f"{picture}.svg"] = "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
    return pictures


def _output(folder: Path, command: str) -> str:
    """Run a command with colours and return what it prints to both streams."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
    colours = {"FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    arguments = shlex.split(command)
    process = subprocess.run(  # noqa: S603 - the commands are those above
        [sys.executable, "-m", "funcmcp", *arguments],
        cwd=folder,
        env={**inherited, **colours},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    return process.stdout


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, svg in draw().items():
        (FOLDER / name).write_text(svg, encoding="utf-8")
        sys.stdout.write(f"{(FOLDER / name).relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
