"""Write the bill of materials (CycloneDX) of a distribution that is installed: ``sbom.py PYTHON PROJECT FILE``.

It runs in .servers/dist, with cyclonedx-bom. PROJECT is the pyproject.toml of the distribution.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def main(python: str, project: str, target: Path) -> None:
    """Write the document, with the time of the commit, and validate it by its schema."""
    options = ["--pyproject", project, "--output-reproducible", "--output-format", "JSON", "--spec-version", "1.6"]
    command = [sys.executable, "-m", "cyclonedx_py", "environment", *options, python]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    document = json.loads(output)
    document["metadata"]["timestamp"] = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC).isoformat()
    text = json.dumps(document, indent=2) + "\n"
    errors = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if errors is not None:
        sys.exit(f"The bill of materials of {project} is not valid: {errors}")
    target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
