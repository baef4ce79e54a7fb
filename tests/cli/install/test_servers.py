"""The commands that clients start: absolute paths, the right interpreter, and names that every client accepts."""

from __future__ import annotations

import re
import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from funcmcp import __version__
from funcmcp_cli.failure import Failure
from funcmcp_cli.install.entries import ServerDescription
from funcmcp_cli.install.packages import Packages
from funcmcp_cli.install.servers import _name_in, read_variables, server_at, slug, with_absolute_program

if TYPE_CHECKING:
    from pathlib import Path

_SLOW = pytest.mark.slow("It takes half a second or longer, mostly to start processes or servers.")

SERVER = 'from funcmcp import MCPServer\nmcp = MCPServer("Order Desk, Köln")\n'
FAULTY = "@mcp.tool\ndef bad(x: 'Foo') -> str:\n    return x\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))  # uv may be beside the interpreter of the tests
    return tmp_path


@_SLOW
def test_a_file_is_run_by_this_interpreter(project: Path) -> None:
    (project / "desk_file.py").write_text(SERVER)
    server = server_at("desk_file.py:mcp", None, env=["A=b=c", "TOKEN"], headers=[], runner="auto")
    assert server.command == (
        sys.executable, "-m", "funcmcp", "run", f"{project}/desk_file.py:mcp", "--stdio",
    )  # fmt: skip
    assert (server.name, server.env) == ("order-desk-k-ln", {"A": "b=c", "TOKEN": "${TOKEN}"})


def test_a_module_of_this_folder_gets_its_path(project: Path) -> None:
    (project / "desk_module.py").write_text(SERVER)
    server = server_at("desk_module", "desk", arguments=["-v"], env=[], headers=[], runner="python")
    assert server.command[3:] == ("run", "desk_module", "--stdio", "--", "-v")
    assert (server.name, server.env) == ("desk", {"PYTHONPATH": str(project)})


@_SLOW
def test_a_server_without_a_project_is_run_by_uvx_without_dependencies(project: Path) -> None:
    (project / "desk_uvx.py").write_text(SERVER)
    server = server_at("desk_uvx.py", None, env=[], headers=[], runner="uvx")
    assert server.command == ("uvx", f"funcmcp@{__version__}", "run", f"{project}/desk_uvx.py", "--stdio")


def test_a_program_on_path_gets_its_path_for_a_client_without_one(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "bin").mkdir()
    for program in ("uv", "uvx", "npx.cmd"):
        (project / "bin" / program).touch(0o755)
    for command, program in (
        ("uv", f"{project}/bin/uv"),
        ("uvx", f"{project}/bin/uvx"),
        ("npx.cmd", "npx.cmd"),  # Node.js starts it by its name only
        ("./uvx", "./uvx"),
    ):
        server = with_absolute_program(ServerDescription("desk", (command, "desk-mcp")))
        assert (server.command, server.advice) == ((program, "desk-mcp"), "")
    monkeypatch.setenv("PATH", "")
    missing = with_absolute_program(ServerDescription("desk", ("uvx", "desk-mcp")))
    assert missing.command == ("uvx", "desk-mcp")
    assert missing.advice.startswith("uvx is not on PATH")
    remote = ServerDescription("desk", url="https://example.com/mcp")
    assert with_absolute_program(remote) is remote


@_SLOW
def test_an_interpreter_in_the_cache_of_uv_is_that_of_uvx(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with CACHEDIR.TAG may be deleted (https://bford.info/cachedir/). `uv venv` writes one into its own."""
    (project / "desk_cache.py").write_text(SERVER)
    (project / "cache").mkdir()
    (project / "cache" / "CACHEDIR.TAG").touch()
    monkeypatch.setenv("UV", str(project / "uv"))
    for prefix, program in (("cache", sys.executable), ("cache/archive-v0/x", "uvx"), ("lib", sys.executable)):
        monkeypatch.setattr(sys, "prefix", str(project / prefix))
        assert server_at("desk_cache.py", None, env=[], headers=[], runner="auto").command[0] == program
        assert server_at("desk_cache.py", None, env=[], headers=[], runner="python").command[0] == sys.executable
    monkeypatch.delenv("UV")
    monkeypatch.setattr(sys, "prefix", str(project / "cache" / "archive-v0" / "x"))
    assert server_at("desk_cache.py", None, env=[], headers=[], runner="auto").command[0] == sys.executable


@_SLOW
def test_a_project_of_uv_is_run_by_uv(project: Path) -> None:
    (project / "desk_uv.py").write_text(SERVER)
    (project / "pyproject.toml").touch()
    (project / "bin").mkdir()
    uv = project / "bin" / "uv"
    uv.touch(mode=0o755)
    assert server_at("desk_uv.py", None, env=[], headers=[], runner="auto").command[0] == sys.executable
    (project / "uv.lock").touch()
    server = server_at("desk_uv.py", None, env=[], headers=[], runner="auto")
    expected = (str(uv), "run", "--project", str(project), "funcmcp", "run", f"{project}/desk_uv.py", "--stdio")
    assert server.command == expected
    assert server_at("desk_uv.py", None, env=[], headers=[], runner="python").command[0] == sys.executable
    assert server.advice == ""
    uv.rename(project / "uv")  # beside the interpreter
    server = server_at("desk_uv.py", None, env=[], headers=[], runner="uv")
    assert server.command[0] == f"{project}/uv"
    (project / "uv").unlink()
    with pytest.raises(Failure, match="uv is not on PATH"):
        server_at("desk_uv.py", None, env=[], headers=[], runner="uv")
    server = server_at("desk_uv.py", None, env=[], headers=[], runner="auto")
    assert server.command[0] == sys.executable
    assert server.advice.startswith(f"{project} has uv.lock, but uv is not on PATH: ")


def test_variables_of_a_file_are_read_as_other_programs_do(project: Path) -> None:
    (project / ".env").write_text(
        "\ufeff# a comment\r\n\nA=b#c # a comment\nexport B = 'x # ${y}'\n"
        'C="two\\nlines \\"and\\" more" # a comment\nD=\nDESK_NAME=Köln\n',
        encoding="utf-8",
    )
    variables = read_variables(project / ".env")
    assert variables == [
        "A=b#c", "B=x # ${y}", 'C=two\nlines "and" more', "D=", "DESK_NAME=Köln",
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["SECRET", "1A=SECRET", "A='SECRET", 'A="SECRET', "A='x' SECRET", "=SECRET"])
def test_a_line_of_a_file_that_is_no_variable_is_named_without_its_text(project: Path, line: str) -> None:
    (project / ".env").write_text(f"A=1\n{line}\n")
    with pytest.raises(Failure, match=r"\.env, line 2: write NAME=VALUE") as caught:
        read_variables(project / ".env")
    assert "SECRET" not in str(caught.value)
    with pytest.raises(Failure, match=r"nothing\.env can't be read: No such file"):
        read_variables(project / "nothing.env")


def test_a_function_app_is_served_by_the_functions_host(project: Path) -> None:
    (project / "host.json").write_text("{}")
    (project / "function_app.py").write_text("import azure.functions\n")
    server = server_at(".", None, env=[], headers=[], runner="auto")
    assert server.command[3:] == ("host", str(project), "--stdio")


def test_a_url_has_headers_and_the_name_of_its_host(project: Path) -> None:
    server = server_at("https://Orders.example.com/mcp", None, env=[], headers=["X-Key: a:b "], runner="auto")
    assert (server.name, server.headers, server.command) == ("orders-example-com", {"X-Key": "a:b"}, ())


@pytest.mark.parametrize(
    ("target", "name", "env", "headers", "message"),
    [
        ("https://example.com", None, ["A=1"], [], "--env is for servers that the client starts"),
        ("https://", None, [], [], "'https://' is not a URL"),
        ("https://[::1/mcp", None, [], [], "is not a URL"),
        ("https://example.com/\nmcp", "a", [], [], "is not a URL"),
        ("https://example.com/a mcp", "a", [], [], "is not a URL"),
        ("https://example.com", None, [], ["X"], "must be NAME:VALUE"),
        ("https://example.com", "a b", [], [], "'a b' is not a valid name"),
        ("server.py", None, [], ["X: 1"], "--header is for servers at a URL"),
        ("server.py", None, ["1=2"], [], "--env must be"),
        ("missing.py", None, [], [], "missing.py does not exist"),
    ],
)
def test_wrong_options_are_refused(
    project: Path, target: str, name: str | None, env: list[str], headers: list[str], message: str
) -> None:
    with pytest.raises(Failure, match=message):
        server_at(target, name, env=env, headers=headers, runner="auto")


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("https://example.com:99999/mcp", "is not a URL"),
        ("https://example.com:port/mcp", "is not a URL"),
        ("https://example.com:0/mcp", "is not a URL"),
        ("https://ann:secret@example.com/mcp", "The URL contains a user"),
        ("https://ann@example.com/mcp", "The URL contains a user"),
    ],
)
def test_a_url_that_clients_reject_is_refused(url: str, error: str) -> None:
    with pytest.raises(Failure, match=error) as refused:
        server_at(url, None, env=[], headers=[], runner="auto")
    assert "secret" not in str(refused.value)


def test_a_server_without_a_command_of_its_own_has_no_arguments(project: Path) -> None:
    (project / "host.json").write_text("{}")
    (project / "function_app.py").write_text("import azure.functions")
    for target in ("https://example.com/mcp", str(project)):
        with pytest.raises(Failure, match="after --"):
            server_at(target, None, arguments=["-v"], env=[], headers=[], runner="auto")


METADATA = '# /// script\n# dependencies = ["no-such-library>=2"]\n# ///\nimport no_such_library\n'


def add_uv(project: Path) -> str:
    """Put a program uv on PATH. It is not run."""
    program = project / "bin" / "uv"
    program.parent.mkdir()
    program.touch(mode=0o755)
    return str(program)


@_SLOW
@pytest.mark.skipif(sys.platform == "win32", reason="Programs of Windows have another name.")
def test_packages_are_installed_by_uvx_or_in_the_project_of_uv(project: Path) -> None:
    uv = add_uv(project)
    (project / "desk_with.py").write_text(SERVER)
    packages = Packages(("pandas>=2",), project / "more.txt")
    options = ("--with", "pandas>=2", "--with-requirements", f"{project}/more.txt")
    server = server_at("desk_with.py", None, env=[], headers=[], runner="auto", packages=packages)
    run = ("run", f"{project}/desk_with.py", "--stdio")
    assert server.command == ("uvx", *options, f"funcmcp@{__version__}", *run)
    (project / "pyproject.toml").write_text("[project]\nname = 'a'\nversion = '1'\n")
    (project / "uv.lock").touch()
    server = server_at("desk_with.py", None, env=[], headers=[], runner="auto", packages=packages)
    assert server.command == (uv, "run", "--project", str(project), *options, "funcmcp", *run)


@pytest.mark.skipif(sys.platform == "win32", reason="Programs of Windows have another name.")
def test_uv_reads_the_metadata_of_a_script_whose_packages_are_missing_here(project: Path) -> None:
    script = project / "desk_script.py"
    script.write_text(METADATA + SERVER)
    with pytest.raises(Failure, match=r"uvx --with-requirements desk_script\.py funcmcp run desk_script\.py"):
        server_at("desk_script.py", None, env=[], headers=[], runner="auto")
    add_uv(project)
    server = server_at("desk_script.py", None, env=[], headers=[], runner="auto")
    assert server.command[:4] == ("uvx", "--with-requirements", str(script), f"funcmcp@{__version__}")
    assert server.name == "desk_script"
    assert server.advice.startswith("The tools of the server are not checked, because this Python has not all")


def test_a_script_is_run_by_this_interpreter_without_uv_and_the_user_learns_it(project: Path) -> None:
    (project / "desk_listed.py").write_text(METADATA.replace("import no_such_library", "") + SERVER)
    server = server_at("desk_listed.py", None, env=[], headers=[], runner="auto")
    assert server.command[0] == sys.executable
    assert server.advice.startswith("desk_listed.py lists its packages, but uv is not on PATH")


@pytest.mark.parametrize(
    ("target", "runner", "message"),
    [
        ("https://example.com/mcp", "auto", "A server at a URL has its own packages. Leave out --with"),
        ("uvx desk-mcp", "auto", "A command such as uvx has its own packages."),
        ("desk_rejected.py", "auto", "need uv, which is not on PATH. Install it"),
        ("desk_rejected.py", "python", "need uv. Leave out --runner python, or install them: "),
    ],
)
def test_packages_that_nothing_would_install_are_rejected(
    project: Path, target: str, runner: str, message: str
) -> None:
    (project / "desk_rejected.py").write_text(SERVER)
    with pytest.raises(Failure, match=re.escape(message)):
        server_at(target, None, env=[], headers=[], runner=runner, packages=Packages(("pandas",)))


def test_tools_that_the_server_leaves_out_are_part_of_its_description(project: Path) -> None:
    (project / "desk_faulty.py").write_text(SERVER + FAULTY)
    server = server_at("desk_faulty.py", None, env=[], headers=[], runner="python")
    assert [fault.key for fault in server.faults] == ["bad"]


def test_the_default_name_of_a_command_is_that_of_what_it_runs() -> None:
    """Two containers, or two options of uvx, must not become entries of one name."""
    names = {
        "uvx --python 3.12 order-desk==1.2": "order-desk",
        "uvx --with 'mcp<2' acme.order-desk@latest": "acme-order-desk",
        "uvx --from git+https://github.com/acme/desk.git@v1 order-desk": "desk",
        "npx -y @acme/order-desk /tmp": "order-desk",
        "docker run -i --rm -e API_KEY ghcr.io/acme/desk:1.2": "desk",
        "uv run --directory /x python -m shop.server": "shop-server",
        "uv tool run order-desk": "order-desk",
        "python3.12 /a/shop.py": "shop",
        "pipx run order-desk": "order-desk",
        "cmd /c npx -y order-desk": "order-desk",
        "env A=1 uvx order-desk": "order-desk",
        "uvx": "uvx",
        "uvx --python": "uvx",
        "/opt/order-desk --port 1": "order-desk",
    }
    wrong = {command: (_name_in(shlex.split(command)), name) for command, name in names.items()}
    assert not {command: pair for command, pair in wrong.items() if slug(pair[0]) != pair[1]}
