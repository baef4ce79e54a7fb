"""Writes the results as Markdown tables and as a plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]
COLOURS = {"funcmcp run": "#0e3f30", "funcmcp": "#1b6e53", "mcp": "#8a8fa3", "fastmcp": "#c9a24b"}


def title(row: Row) -> str:
    """Return the name of a row."""
    parts = [row["row"], row.get("tool"), row.get("era"), row.get("function")]
    if "tools" in row:
        parts.append(f"{row['tools']} tools")
    if "varies" in row:
        parts.append(f"other {row['varies']}" if row["varies"] != "nothing" else "same requests")
    if "connections" in row:
        parts.append(f"c={row['connections']}")
    if "compiled_files" in row:
        parts.append("with .pyc" if row["compiled_files"] else "without .pyc")
    return " ".join(str(part) for part in parts if part)


def table(results: dict[str, Any]) -> str:
    """Return all rows as Markdown."""
    rows = _rows(results)
    lines = [f"# Results with Python {results['python']}", "", results["machine"], "", _versions(results), ""]
    lines += [
        "## Throughput",
        "",
        "Responses per second (p50 / p99 in ms; CPU time of the server per response in µs).",
        "`funcmcp` runs in uvicorn, as an ASGI application. Shares are medians of the ratios of each round.",
        "",
    ]
    lines += _throughput([row for row in rows if "answers_per_second" in row])
    lines += ["", "## Start", "", "Milliseconds, and in brackets the multiple of the floor's.", ""]
    lines += _times([row for row in rows if "milliseconds" in row])
    lines += _callers([row for row in rows if "share_of_open" in row])
    lines += _function_apps([row for row in rows if "apps" in row])
    lines += _streams([row for row in rows if "kib_per_stream" in row])
    lines += _proxies([row for row in rows if row["row"] == "proxy"])
    lines += _growth([row for row in rows if row["row"] == "growth"])
    lines += ["", "## Memory", ""]
    for row in rows:
        if "resident_kib" in row:
            memory = ", ".join(f"{name} {values} KiB" for name, values in row["resident_kib"].items())
            growth = ", ".join(f"{name} {value} %" for name, value in row["growth_percent_after_the_first"].items())
            requests = row["after_requests"]
            lines.append(f"- {row['era']}, resident after {requests} requests: {memory}. Growth: {growth}.")
        if "kib" in row:
            lines.append(f"- {title(row)}: {row['kib']} KiB (funcmcp, sessions in memory).")
    return "\n".join(lines) + "\n"


def _rows(results: dict[str, Any]) -> list[Row]:
    return [row for rows in results["measurements"].values() for row in rows]


def _versions(results: dict[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in results["versions"].items())


def _throughput(rows: list[Row]) -> list[str]:
    names = ("const", "floor", *COLOURS)
    shares_of_floor = " | ".join(f"{name} / floor" for name in COLOURS)
    lines = [f"| row | {' | '.join(names)} | {shares_of_floor} | funcmcp / const |"]
    lines.append("|" + "---|" * 12)
    for row in rows:
        cells = [
            f"{row['answers_per_second'][name]} ({_times_of(row, name)})" if name in row["answers_per_second"] else "-"
            for name in names
        ]
        shares = [row.get("share_of_floor", {}).get(name, "-") for name in COLOURS]
        shares.append(row.get("share_of_const", {}).get("funcmcp", "-"))
        lines.append(f"| {title(row)} | {' | '.join(cells)} | {' | '.join(map(str, shares))} |")
    return lines


def _times_of(row: Row, name: str) -> str:
    latencies = f"{row['p50_ms'][name]} / {row['p99_ms'][name]}"
    if name in row.get("cpu_microseconds", {}):
        return f"{latencies}; {row['cpu_microseconds'][name]}"
    return latencies


def _callers(rows: list[Row]) -> list[str]:
    lines = [
        f"- {title(row)}: {row['rates']['with a token']} responses per second, and {row['rates']['without']} of the "
        f"same server without authentication: {row['share_of_open']} of its throughput."
        for row in rows
    ]
    return ["", "## Authentication", "", *lines] if lines else []


def _function_apps(rows: list[Row]) -> list[str]:
    """Return a table whose columns are function apps."""
    lines: list[str] = []
    for row in rows:
        names = list(row["apps"])
        lines += ["", f"| {title(row)} | {' | '.join(names)} |", "|" + "---|" * (len(names) + 1)]
        for figure in row["apps"][names[0]]:
            lines.append(f"| {figure} | {' | '.join(str(row['apps'][name][figure]) for name in names)} |")
    return ["", "## Azure Functions", "", "Milliseconds, in the worker library.", *lines] if lines else []


def _proxies(rows: list[Row]) -> list[str]:
    """Return a table of calls through proxies."""
    lines = [
        "",
        "## Proxies",
        "",
        "`tools/call` of add: calls per second (p50 in ms; CPU time of the process per call in µs; time that a proxy",
        "adds to the p50 of the server itself, in ms).",
        "",
    ]
    names = list(dict.fromkeys(name for row in rows for name in row["rate"]))
    lines += [f"| upstream | {' | '.join(names)} |", "|" + "---|" * (len(names) + 1)]
    for row in rows:
        label = f"{row['upstream']} {row['era']} c={row['connections']}"
        lines.append(f"| {label} | {' | '.join(_proxied(row, name) for name in names)} |")
    return lines if rows else []


def _proxied(row: Row, name: str) -> str:
    if name not in row["rate"]:
        return "-"
    figures = [f"{row['p50_ms'][name]}", f"{row['cpu_microseconds'][name]}"]
    if name in row.get("added_ms", {}):
        figures.append(f"+{row['added_ms'][name]}")
    return f"{row['rate'][name]:.0f} ({'; '.join(figures)})"


def _growth(rows: list[Row]) -> list[str]:
    lines = []
    for row in rows:
        times = ", ".join(f"{count}: {took}" for count, took in row["microseconds"].items())
        lines.append(f"- {row['kind']}, {times}.")
    title = "CPU time of the server for a `tools/call`, in microseconds, behind the number of other things."
    return ["", "## Growth", "", title, "", *lines] if lines else []


def _streams(rows: list[Row]) -> list[str]:
    lines = [
        f"- {row['server']}: {row['streams']} open streams of `{row['row']}`, one notification on each: it arrived "
        f"after {row['arrival_p50_ms']} ms (p50) and {row['arrival_p99_ms']} ms (p99). "
        f"Resident memory: {row['kib_per_stream']} KiB per stream, with its connection."
        for row in rows
    ]
    return ["", "## Streams", "", *lines] if lines else []


def _times(rows: list[Row]) -> list[str]:
    names = ("floor", "funcmcp", "mcp", "fastmcp")
    lines = [f"| row | {' | '.join(names)} |", "|" + "---|" * 5]
    for row in rows:
        cells = [
            f"{row['milliseconds'][name]}"
            + (f" ({row['times_the_floor'][name]})" if name in row["times_the_floor"] else "")
            for name in names
        ]
        lines.append(f"| {title(row)} | {' | '.join(cells)} |")
    return lines


def plot(results: dict[str, Any], path: Path) -> None:
    """Draw the share of the floor of each framework, row by row."""
    from matplotlib.figure import Figure

    rows = [row for row in _rows(results) if "share_of_floor" in row]
    if not rows:
        return
    figure = Figure(figsize=(10, 1.5 + 0.42 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for offset, (name, colour) in enumerate(COLOURS.items()):
        measured = [index for index, row in enumerate(rows) if name in row["share_of_floor"]]
        places = [index + (offset - 1.5) * 0.21 for index in measured]
        shares = [rows[index]["share_of_floor"][name] for index in measured]
        axes.barh(places, shares, height=0.2, color=colour, label=name)
        for place, share in zip(places, shares, strict=True):
            axes.text(share + 0.006, place, f"{share:.2f}", va="center", fontsize=7)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.axvline(0.75, color="black", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(rows)), [title(row) for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("responses per second as a share of the floor (1.0); the dotted line is the goal, 0.75")
    axes.set_xlim(0, 1.12)
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=110)


def plot_growth(results: dict[str, Any], path: Path) -> None:
    """Draw the cost of a call, as a multiple of the first, by the number of things of each kind."""
    from matplotlib.figure import Figure

    rows = [row for row in _rows(results) if row["row"] == "growth"]
    if not rows:
        return
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for row in rows:
        counts = [int(count) for count in row["times_the_first"]]
        axes.plot(counts, list(row["times_the_first"].values()), marker="o", label=row["kind"])
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("number of tools, open sessions, open streams or principals")
    axes.set_ylabel("CPU time of a call, as a multiple of the first")
    axes.legend()
    figure.savefig(path, dpi=110)
