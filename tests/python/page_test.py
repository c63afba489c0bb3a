"""Runs the code of docs/python.md, block by block, in one interpreter."""

import importlib.util
import os
import re
import tempfile
from pathlib import Path

if importlib.util.find_spec("numpy") is None:
    print("numpy is not installed: skipped")
    raise SystemExit(77)

source = Path(os.environ["SOTTO_SOURCE"])
page = (source / "docs" / "python.md").read_text(encoding="utf-8")
blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
assert len(blocks) >= 4, "the page has lost its code"

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.symlink(source / "examples", "examples")
    names = {}
    for number, block in enumerate(blocks, 1):
        print(f"block {number}", flush=True)
        exec(compile(block, f"docs/python.md, block {number}", "exec"), names)
    os.chdir("/")
