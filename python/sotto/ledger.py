"""The ledger of a run or of a home."""

from __future__ import annotations

from pathlib import Path

from .arguments import PathLike, path
from .documents import Statement, Verification
from .runs import _command


class Ledger:
    """What was released from a run directory or a home, and what it cost."""

    def __init__(self, folder: PathLike):
        self.folder = Path(path("folder", folder))

    def show(self) -> Statement:
        """What every client has spent: ``.clients``, ``.to_dataframe()``, and all of `sotto ledger show --json`."""
        return Statement(_command("ledger", "show", str(self.folder), "--json"))

    def verify(self) -> Verification:
        """Checks the chain of rows, the budgets, and epsilon against the summary; an ``Error`` says what is wrong."""
        return Verification(_command("ledger", "verify", str(self.folder), "--json"))

    def __repr__(self) -> str:
        return f"Ledger({str(self.folder)!r})"
