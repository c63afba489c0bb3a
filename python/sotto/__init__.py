"""Differentially private personalised federated learning.

    import sotto

    sotto.account(noise_multiplier=1.0, steps=10000, sampling_rate=0.01, delta=1e-5, adjacency="add-remove").epsilon
    result = sotto.run("examples/6_private_records.toml", {"privacy.epsilon": 1})
    guard = sotto.Guard("home", policy)    # an owner's budget before whatever framework trains

What is wrong with a call is an ``Error`` with one line; a release that a budget does not allow is ``BudgetSpent``.
"""

from ._engine import BudgetSpent, Error, __version__
from .accounting import Calibration, Guarantee, account, calibrate
from .documents import Attacked, Audit, Plan, PlannedRelease, Spending, Statement, Verification
from .guard import Guard
from .ledger import Ledger
from .runs import Cell, Run, Sweep, audit, plan, run, sweep

__all__ = [
    "Attacked",
    "Audit",
    "BudgetSpent",
    "Calibration",
    "Cell",
    "Error",
    "Guarantee",
    "Guard",
    "Ledger",
    "Plan",
    "PlannedRelease",
    "Run",
    "Spending",
    "Statement",
    "Sweep",
    "Verification",
    "__version__",
    "account",
    "audit",
    "calibrate",
    "plan",
    "run",
    "sweep",
]
