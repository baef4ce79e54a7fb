"""Configuration of Sphinx, which builds the documentation site. Run it with ``make docs``."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

project = "funcmcp"
author = "the funcmcp authors"
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
# scripts/documentation_site.py writes what the search page ranks, the pages as Markdown, and llms.txt. It adds the dark
# twins of pictures.
extensions = ["myst_parser", "sphinx_copybutton", "scripts.documentation_site"]

# The anchors of headings are those that GitHub makes, so a link works in both places.
myst_heading_anchors = 4

smartquotes = False  # quotation marks and dashes stay as they are written

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = html_favicon = "images/icon.svg"
templates_path = ["_templates"]
exclude_patterns = ["_templates"]
html_title = f"funcmcp {version}"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False

# The button of a block of commands copies the commands, without their prompts and without their output.
copybutton_prompt_text = "$ "
