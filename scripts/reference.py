#!/usr/bin/env python3
"""Writes docs/reference.md from what the program lists. Usage: scripts/reference.py PROGRAM [FILE]"""
import json
import subprocess
import sys
from pathlib import Path

SECTIONS = [
    ("methods", "Methods", "`method.name`. A method without units is not private.",
     ["name", "what", "family", "units", "observers", "variants", "citation"]),
    ("models", "Models", "`model.name`, and the keys of `[model]` that each has besides `weights`, `dropout`, `freeze_backbone`, `lora` and `personal`.",
     ["name", "what", "keys", "citation"]),
    ("partitions", "Partitions", "`data.partition`, and the keys of `[data]` that each has of its own.", ["name", "what", "keys"]),
    ("attacks", "Attacks", "`sotto attack RUN --attack NAME`; see [attacks](attacks.md).", ["name", "what", "citation"]),
    ("mechanisms", "Mechanisms", "As the ledger's rows name them; see [privacy](privacy.md).", ["name", "what", "citation"]),
]


def cell(key, value):
    if isinstance(value, list):
        return ", ".join(f"`{item}`" for item in value)
    text = str(value).replace("|", "\\|")
    return f"`{text}`" if key == "name" else text


def main():
    program = sys.argv[1]
    file = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).resolve().parent.parent / "docs" / "reference.md"
    text = "# Reference\n\nWhat there is to choose from. `sotto list` prints the same, with `--json` for programs; `scripts/reference.py` writes this page from it.\n"
    for name, title, intro, columns in SECTIONS:
        items = json.loads(subprocess.run([program, "list", name, "--json"], check=True, capture_output=True, text=True).stdout)
        text += f"\n## {title}\n\n{intro}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
        for item in items:
            text += "| " + " | ".join(cell(key, item[key]) for key in columns) + " |\n"
    file.write_text(text)


main()
