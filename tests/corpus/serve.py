"""Serves one server of the corpus on stdio: `serve.py DESCRIPTION`. It runs in the environment of the server's library.

`funcmcp diff` starts it twice, for a server and for its migrated copy; see `migration`.
"""

from __future__ import annotations

import contextlib
import json
import sys

from tests.corpus import observe


def main() -> None:
    """Load the server, whose prints go to stderr, and serve it until the client closes stdin."""
    description = json.loads(sys.argv[1])
    sys.meta_path.append(observe.Absent(description.get("absent", [])))
    sys.addaudithook(observe.refuse_network)
    with contextlib.redirect_stdout(sys.stderr):
        server = observe.loaded(description)
    server.run("stdio")


if __name__ == "__main__":
    main()
