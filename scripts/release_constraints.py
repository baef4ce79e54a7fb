"""Write the constraints of a release: ``release_constraints.py FOLDER``.

FOLDER/constraints.txt has the versions and hashes of distributions/constraints.txt, and those of the distributions in
FOLDER. With it ``pip install --require-hashes`` accepts no other files.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from packaging.utils import parse_sdist_filename, parse_wheel_filename

DEPENDENCIES = Path(__file__).parents[1] / "distributions" / "constraints.txt"


def write(folder: Path) -> None:
    """Write the constraints of the distributions in a folder, and of their dependencies."""
    hashes: dict[str, list[str]] = {}
    for path in sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")]):
        name, version = (
            parse_wheel_filename(path.name)[:2] if path.suffix == ".whl" else parse_sdist_filename(path.name)
        )
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        hashes.setdefault(f"{name}=={version}", []).append(f"--hash=sha256:{digest}")
    lines = [" \\\n    ".join([pin, *sorted(values)]) + "\n" for pin, values in hashes.items()]
    text = "".join(lines) + DEPENDENCIES.read_text(encoding="utf-8")
    (folder / "constraints.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
