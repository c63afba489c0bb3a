#!/usr/bin/env python3
"""Measured tables: from a finished sweep to the pages that quote it, so that no figure of a table is typed.

Usage: scripts/results.py take CONFIG FOLDER   keeps what the sweep of CONFIG into FOLDER measured, as docs/results/tables/….json
       scripts/results.py write                writes tables and pictures anew wherever a page in docs/ names them
       scripts/results.py check                fails if a page shows anything else than what was measured

A page names a table, or a picture of one, by a comment, and what follows up to `<!-- end -->` is written:

    <!-- table frontier/heart-disease accuracy -->        rows against the sweep's grid, mean ± std over seeds in percent
    <!-- table frontier/heart-disease epsilons -->        the same cells: claimed ε / proven ε, the largest of any client
    <!-- picture frontier/heart-disease accuracy -->      one line per row over the grid's one axis
"""
import json
import math
import re
import statistics
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
KEPT = DOCS / "results" / "tables"
PICTURES = DOCS / "results" / "pictures"
NAMED = re.compile(r"<!-- (table|picture) (\S+) (\S+) -->\n.*?<!-- end -->", re.S)

# What is kept of every run's summary, and where it stands there.
METRICS = {
    "accuracy": ("accuracy", "mean"),
    "worst_client": ("accuracy", "worst"),
    "global_model": ("accuracy_global",),
    "all_classes": ("global_test_accuracy", "mean"),
    "last_ten": ("last_ten", "accuracy"),
    "local_accuracy": ("local_accuracy", "mean"),
    "neighbour_accuracy": ("neighbour_accuracy", "mean"),
}
LEAST_P = 0.05


# --- keeping -------------------------------------------------------------------------------------------------------------------

def value_at(summary, path):
    for part in path:
        summary = summary.get(part) if isinstance(summary, dict) else None
    return summary if isinstance(summary, (int, float)) and math.isfinite(summary) else None


def kept_cell(cell, folder):
    summaries = [json.loads((folder / Path(run).name / "summary.json").read_text()) for run in cell["runs"]]
    kept = {key: cell[key] for key in ("row", "settings", "claimed_epsilon", "proven_epsilon", "basis", "seeds", "p_value", "failures")}
    kept["reference"] = cell["against"] is None
    for name, path in METRICS.items():
        values = [value_at(summary, path) for summary in summaries]
        if values and all(value is not None for value in values):
            kept[name] = [round(value, 6) for value in values]
    return kept


def take(config, folder):
    sweep = json.loads((folder / "sweep.json").read_text())
    if sweep["quick"]:
        sys.exit(f"{folder} is a quick look and no result")
    name = config.resolve().relative_to(ROOT / "examples").with_suffix("")
    kept = {"config": str(config.resolve().relative_to(ROOT)), "metric": sweep["metric"], "test": sweep["test"], "against": sweep["against"]}
    cells = ",\n  ".join(json.dumps(kept_cell(cell, folder), ensure_ascii=False) for cell in sweep["cells"])
    file = KEPT / name.with_suffix(".json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept, ensure_ascii=False)[:-1] + ', "cells": [\n  ' + cells + "]}\n")
    print(f"{file.relative_to(ROOT)}: {len(sweep['cells'])} cells")


# --- showing -------------------------------------------------------------------------------------------------------------------

def loaded(name):
    return json.loads((KEPT / (name + ".json")).read_text())


def column_of(cell):
    """The cell's settings as words: tables of settings by their name and what else they set."""
    words = []
    for text in cell["settings"].values():
        value = tomllib.loads("x = " + text)["x"] if text.startswith("{") else text
        words += [str(part) for _, part in sorted(value.items(), key=lambda item: item[0] != "name")] if isinstance(value, dict) else [value]
    return ", ".join(words)


def ordered(values):
    return list(dict.fromkeys(values))


def figure(cell, key):
    if key == "epsilons":
        return " / ".join("∞" if cell[which] is None else f"{cell[which]:.4g}" for which in ("claimed_epsilon", "proven_epsilon"))
    if cell["failures"] or key not in cell:
        return "failed" if cell["failures"] else "–"
    values = [100 * value for value in cell[key]]
    text = f"{statistics.mean(values):.1f}" + (f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else "")
    return text


def mark(cell, table, key):
    """How the cell compares with the reference in the metric that the sweep tested."""
    if table["metric"].split(".")[0] != key or cell["p_value"] is None or cell["p_value"] >= LEAST_P:
        return ""
    reference = next(other for other in table["cells"] if other["reference"] and other["settings"] == cell["settings"])
    return " ▲" if statistics.mean(cell[key]) > statistics.mean(reference[key]) else " ▼"


def table_text(name, key):
    table = loaded(name)
    rows, columns = ordered(cell["row"] for cell in table["cells"]), ordered(column_of(cell) for cell in table["cells"])
    found = {(cell["row"], column_of(cell)): cell for cell in table["cells"]}
    axes = " / ".join(ordered(key for cell in table["cells"] for key in cell["settings"]))
    lines = [f"| {axes} | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for row in rows:
        cells = [found[row, column] for column in columns]
        lines.append(f"| {row} | " + " | ".join(figure(cell, key) + mark(cell, table, key) for cell in cells) + " |")
    seeds = sorted({len(cell["seeds"]) for cell in table["cells"]})
    caption = f"`sotto sweep {table['config']}`, {' or '.join(map(str, seeds))} seeds."
    if key == "epsilons":
        caption = "Claimed ε / proven ε, the largest of any client. " + caption
    else:
        caption = "Mean ± standard deviation over seeds, in %. " + caption
    if any(mark(cell, table, key) for cell in table["cells"]):
        caption += f" ▲ ▼: above or below “{table['against']}” with p < {LEAST_P} ({table['test']})."
    return "\n".join(lines) + "\n\n" + caption


COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#e377c2", "#17becf", "#bcbd22", "#7f7f7f", "#393b79", "#637939", "#843c39", "#e7969c", "#000000"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 56, 230, 16, 44


def picture_svg(name, key):
    table = loaded(name)
    axis = ordered(key for cell in table["cells"] for key in cell["settings"])
    if len(axis) != 1:
        sys.exit(f"{name}: a picture needs a grid of one axis")
    points = {}
    for cell in table["cells"]:
        if key in cell:
            points.setdefault(cell["row"], []).append((float(cell["settings"][axis[0]]), [100 * value for value in cell[key]]))
    xs = sorted({x for line in points.values() for x, _ in line})
    every = [statistics.mean(values) for line in points.values() for _, values in line]
    low, high = 5 * math.floor(min(every) / 5), 5 * math.ceil(max(every) / 5)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def across(x):
        return LEFT + 12 + (right - LEFT - 24) * (math.log(x / xs[0]) / math.log(xs[-1] / xs[0]))

    def up(y):
        return bottom - (bottom - TOP) * (y - low) / (high - low)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" fill="#333">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>']
    step = next(step for step in (1, 2, 5, 10, 20) if (high - low) / step <= 10)
    for y in range(low, high + 1, step):
        parts.append(f'<path d="M{LEFT} {up(y):.1f}H{right}" stroke="#ddd"/><text x="{LEFT - 8}" y="{up(y) + 4:.1f}" text-anchor="end">{y}</text>')
    for x in xs:
        parts.append(f'<text x="{across(x):.1f}" y="{bottom + 18}" text-anchor="middle">{x:g}</text>')
    parts.append(f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{"ε" if axis[0].endswith("epsilon") else axis[0]}</text>')
    parts.append(f'<text transform="translate(14 {(TOP + bottom) / 2:.0f}) rotate(-90)" text-anchor="middle">{key.replace("_", " ")} in %</text>')
    # Names stand beside the ends of their lines, as far apart as letters are high.
    ends = sorted(points, key=lambda row: -statistics.mean(points[row][-1][1]))
    heights = []
    for row in ends:
        heights.append(max(up(statistics.mean(points[row][-1][1])), heights[-1] + 15 if heights else TOP + 6))
    over = max(0, heights[-1] - bottom)
    for i in reversed(range(len(heights))):
        heights[i] = min(heights[i], bottom - 15 * (len(heights) - 1 - i)) if over else heights[i]
    for number, row in enumerate(points):
        line, colour = sorted(points[row]), COLOURS[number % len(COLOURS)]
        path = "L".join(f"{across(x):.1f} {up(statistics.mean(values)):.1f}" for x, values in line)
        dash = ' stroke-dasharray="6 4"' if row.startswith(("alone", "no privacy")) else ""
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        for x, values in line:
            parts.append(f'<circle cx="{across(x):.1f}" cy="{up(statistics.mean(values)):.1f}" r="3" fill="{colour}"/>')
        height, end = heights[ends.index(row)], up(statistics.mean(line[-1][1]))
        parts.append(f'<path d="M{across(xs[-1]) + 5:.1f} {end:.1f}L{right + 12} {height:.1f}" stroke="{colour}" opacity="0.4"/>'
                     f'<text x="{right + 16}" y="{height + 4:.1f}" fill="{colour}">{row}</text>')
    return "\n".join(parts) + "\n</svg>\n"


def named_text(kind, name, key, page):
    if kind == "table":
        return table_text(name, key)
    picture = PICTURES / f"{name.replace('/', '-')}-{key}.svg"
    up = "../" * (len(page.relative_to(DOCS).parts) - 1)
    return f"![{key.replace('_', ' ')} of each row over the grid]({up}{picture.relative_to(DOCS)})"


def pages():
    """(page, its text as it should be), and (picture, its text as it should be)."""
    wanted = {}
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text()
        for kind, name, key in (found.groups() for found in NAMED.finditer(text)):
            if kind == "picture":
                wanted[PICTURES / f"{name.replace('/', '-')}-{key}.svg"] = picture_svg(name, key)
        wanted[page] = NAMED.sub(lambda found: f"<!-- {found[1]} {found[2]} {found[3]} -->\n{named_text(*found.groups(), page)}\n<!-- end -->", text)
    return wanted


def write():
    PICTURES.mkdir(exist_ok=True)
    for file, text in pages().items():
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            print(file.relative_to(ROOT))


def check():
    wanted = pages()
    wrong = [str(file.relative_to(ROOT)) for file, text in wanted.items() if not file.exists() or file.read_text() != text]
    shown = {found[2] for file, text in wanted.items() if file.suffix == ".md" for found in NAMED.finditer(text)}
    kept = {str(file.relative_to(KEPT).with_suffix("")) for file in KEPT.rglob("*.json")}
    wrong += [f"docs/results/tables/{name}.json is shown on no page" for name in sorted(kept - shown)]
    if wrong:
        sys.exit("not as it was measured (scripts/results.py write):\n" + "\n".join(wrong))
    print(f"{len(kept)} tables are shown as they were measured")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "take":
        take(Path(sys.argv[2]), Path(sys.argv[3]))
    elif sys.argv[1:] == ["write"]:
        write()
    elif sys.argv[1:] == ["check"]:
        check()
    else:
        sys.exit(__doc__)
