"""MCP clients and their configuration files, as data for ``funcmcp install`` and for the page.

Sources, read in November 2026: code.visualstudio.com/docs/agents/reference/mcp-configuration;
code.claude.com/docs/en/mcp; modelcontextprotocol.io/quickstart/user (Claude Desktop); cursor.com/docs/mcp;
docs.devin.ai and docs.windsurf.com; geminicli.com/docs/tools/mcp-server; antigravity.google/docs;
developers.openai.com/codex/mcp; docs.github.com (Copilot CLI, "Add MCP servers"); docs.cline.bot/mcp;
zed.dev/docs/ai/mcp; opencode.ai/v2/docs/mcp-servers; lmstudio.ai/docs/app/mcp.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ClientProfile:
    """The name of a client, and the form of its configuration.

    In paths, ``{home}`` is the user's folder, and ``{config}`` is the folder of applications' settings: ``~/.config``
    (or XDG_CONFIG_HOME) on Linux, ``~/Library/Application Support`` on macOS and ``%APPDATA%`` on Windows.

    Attributes:
        title: The client's name for people.
        user_file: The file with the servers of all projects.
        workspace_file: The file in a project's folder. None if the client does not read one.
        windows_user_file: The user's file on Windows. None if it is *user_file* there, too.
        mac_user_file: The user's file on macOS. None if it is *user_file* there, too.
        home_variable: An environment variable with the folder of the user's file. None if the client has none.
        format: The format of the file.
        has_comments: Whether the client accepts comments and trailing commas in JSON.
        servers: The names of the nested members that lead to the object with the servers.
        stdio: Members of each stdio entry besides the command.
        http: Members of each URL entry besides the URL.
        url: The name of the member with the URL. None if the client starts processes only.
        env: The name of the member with environment variables.
        headers: The name of the member with header fields.
        joins_command: Whether the program and its arguments are one array.
        reference: The form of a reference to the environment variable ``NAME``. None if values are taken literally.
        sign_in: A sentence about signing in to a server at a URL.
        next_step: A sentence about what to do after the file is written.
        page_file: The file that the page names. None if it is *workspace_file*.
        page_command: A command of the client that adds a URL, with ``{name}`` and ``{url}``. None if it has none.
        page_link: A link that adds a URL. None if the client has none. ``{name}`` is the name, ``{entry}`` the entry in
            base64, and ``{named_entry}`` the entry as JSON with the name in it.
    """

    title: str
    user_file: str
    workspace_file: str | None = None
    windows_user_file: str | None = None
    mac_user_file: str | None = None
    home_variable: str | None = None
    format: Literal["json", "toml"] = "json"
    has_comments: bool = False
    servers: tuple[str, ...] = ("mcpServers",)
    stdio: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    http: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    url: str | None = "url"
    env: str = "env"
    headers: str = "headers"
    joins_command: bool = False
    reference: str | None = None
    sign_in: str = "The client opens the browser if the server requires a sign-in."
    next_step: str = "Restart the client."
    page_file: str | None = None
    page_command: str | None = None
    page_link: str | None = None


CLIENTS: Mapping[str, ClientProfile] = MappingProxyType(
    {
        "claude-code": ClientProfile(
            "Claude Code",
            "{home}/.claude.json",
            ".mcp.json",
            home_variable="CLAUDE_CONFIG_DIR",
            stdio={"type": "stdio"},
            http={"type": "http"},
            reference="${NAME}",
            sign_in="If the server requires a sign-in, enter /mcp in Claude Code and choose the server.",
            next_step="Start Claude Code again. /mcp lists the server.",
            page_command="claude mcp add --transport http {name} {url}",
        ),
        "claude-desktop": ClientProfile(
            "Claude Desktop",
            "{config}/Claude/claude_desktop_config.json",
            url=None,
            sign_in=(
                "The file has commands only, so Node's mcp-remote connects to the URL; it opens the browser for a "
                "sign-in. Without Node, add the URL in Settings > Connectors > Add custom connector."
            ),
            next_step="Quit Claude Desktop and start it again.",
            page_file="claude_desktop_config.json",
        ),
        "vscode": ClientProfile(
            "Visual Studio Code",
            "{config}/Code/User/mcp.json",
            ".vscode/mcp.json",
            has_comments=True,
            servers=("servers",),
            stdio={"type": "stdio"},
            http={"type": "http"},
            reference="${input:NAME}",
            next_step="Run MCP: List Servers in the command palette, and start the server.",
            page_link="vscode:mcp/install?{named_entry}",
        ),
        "cursor": ClientProfile(
            "Cursor",
            "{home}/.cursor/mcp.json",
            ".cursor/mcp.json",
            has_comments=True,
            reference="${env:NAME}",
            sign_in="If the server requires a sign-in, Cursor shows a button for it beside the server.",
            next_step="Restart Cursor, and turn the server on under Customize > MCPs.",
            page_link="cursor://anysphere.cursor-deeplink/mcp/install?name={name}&config={entry}",
        ),
        "lm-studio": ClientProfile(
            "LM Studio",
            "{home}/.lmstudio/mcp.json",
            next_step="Open the Program tab in LM Studio, and turn the server on.",
            page_link="lmstudio://add_mcp?name={name}&config={entry}",
            page_file="~/.lmstudio/mcp.json",
        ),
        "codex": ClientProfile(
            "Codex",
            "{home}/.codex/config.toml",
            ".codex/config.toml",
            home_variable="CODEX_HOME",
            format="toml",
            servers=("mcp_servers",),
            headers="http_headers",
            reference="NAME",
            sign_in="If the server requires a sign-in, run: codex mcp login SERVER",
            next_step="Start Codex again. /mcp lists the server.",
            page_file="~/.codex/config.toml",
        ),
        "gemini-cli": ClientProfile(
            "Gemini CLI",
            "{home}/.gemini/settings.json",
            ".gemini/settings.json",
            has_comments=True,
            url="httpUrl",  # "url" means HTTP+SSE there
            reference="${NAME}",
            sign_in="If the server requires a sign-in, enter /mcp auth SERVER in Gemini CLI.",
            next_step="Start Gemini CLI again. /mcp lists the server.",
        ),
        "copilot-cli": ClientProfile(
            "GitHub Copilot CLI",
            "{home}/.copilot/mcp-config.json",
            ".github/mcp.json",
            home_variable="COPILOT_HOME",
            stdio={"type": "stdio", "tools": ["*"]},
            http={"type": "http", "tools": ["*"]},
            reference="${NAME}",
            next_step="Start Copilot CLI again. /mcp show lists the server.",
        ),
        "windsurf": ClientProfile(
            "Windsurf",
            "{home}/.codeium/windsurf/mcp_config.json",
            url="serverUrl",
            reference="${env:NAME}",
            next_step="Choose Refresh in the list of MCP servers. Devin Desktop, its successor, is devin.",
            page_file="~/.codeium/windsurf/mcp_config.json",
        ),
        "devin": ClientProfile(
            "Devin Desktop",
            "{home}/.config/devin/mcp_config.json",
            ".devin/mcp_config.json",
            windows_user_file="{config}/devin/mcp_config.json",
            reference="${env:NAME}",
            sign_in="If the list of servers says Needs auth, choose Authenticate.",
            next_step="The MCP section of the agent panel lists the server.",
        ),
        "zed": ClientProfile(
            "Zed",
            "{config}/zed/settings.json",
            ".zed/settings.json",
            windows_user_file="{config}/Zed/settings.json",
            mac_user_file="{home}/.config/zed/settings.json",
            has_comments=True,
            servers=("context_servers",),
            next_step="The agent panel's settings list the server.",
        ),
        "opencode": ClientProfile(
            "OpenCode",
            "{home}/.config/opencode/opencode.json",
            "opencode.json",
            has_comments=True,
            servers=("mcp", "servers"),
            stdio={"type": "local"},
            http={"type": "remote"},
            env="environment",
            joins_command=True,
            reference="{env:NAME}",
            next_step="Start OpenCode again. Version 1 expects the server directly under mcp.",
        ),
        "cline": ClientProfile(
            "Cline",
            "{home}/.cline/data/settings/cline_mcp_settings.json",
            http={"type": "streamableHttp"},
            next_step="Cline reads the file again by itself.",
            page_file="cline_mcp_settings.json",
        ),
        "antigravity": ClientProfile(
            "Antigravity",
            "{home}/.gemini/config/mcp_config.json",
            ".agents/mcp_config.json",
            url="serverUrl",
            next_step="Start Antigravity again, or choose Refresh under Manage MCP Servers.",
        ),
    }
)
"""The clients by their names on the command line, in the order of the page: those that most people use first."""


def page_clients() -> list[dict[str, Any]]:
    """Return the clients with what the page needs of them, as JSON values."""
    return [
        {
            "id": name,
            "title": client.title,
            "file": client.page_file or client.workspace_file,
            "format": client.format,
            "servers": client.servers,
            "members": dict(client.http),
            "url": client.url,
            "command": client.page_command,
            "link": client.page_link,
        }
        for name, client in CLIENTS.items()
    ]
