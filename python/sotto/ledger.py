"""The ledger of a run or of a home."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .runs import PathLike, _command


class Ledger:
    """What was released from a run directory or a home, and what it cost."""

    def __init__(self, folder: PathLike):
        self.folder = Path(folder)

    def show(self) -> dict[str, Any]:
        """What every client has spent, as `sotto ledger show --json` prints it."""
        return _command("ledger", "show", self.folder, "--json")

    def verify(self) -> dict[str, Any]:
        """Checks the chain of rows, the budgets, and epsilon against the summary; an ``Error`` says what is wrong."""
        return _command("ledger", "verify", self.folder, "--json")

    def __repr__(self) -> str:
        return f"Ledger({os.fspath(self.folder)!r})"
