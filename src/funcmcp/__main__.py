"""``python -m funcmcp``: the same as the command ``funcmcp``, which is in the distribution of that name."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec

if find_spec("funcmcp_cli") is None:
    sys.exit("The command line is not installed. Run: pip install funcmcp")
import_module("funcmcp_cli.main").main()
