# The module that python/engine.cc makes: what the package asks of it. Programs use `sotto`.
from typing import Any, Callable, Optional

__version__: str

class Error(ValueError): ...
class BudgetSpent(Error): ...

def account(question: str, /) -> str: ...
def calibrate(question: str, /) -> str: ...
def command(arguments: list[str], /) -> str: ...
def run(
    config: str,
    overrides: list[str],
    folder: str,
    home: str,
    resume: bool,
    threads: int,
    quiet: bool,
    on_round: Optional[Callable[[str], object]],
    /,
) -> str: ...
def promise(home: str, policy: str, is_file: bool, /) -> None: ...

class Guard:
    def __init__(self, home: str, records: str, /) -> None: ...
    def release(
        self,
        what: str,
        arrays: list[tuple[str, Any]],
        key: str,
        bound: float,
        noise_multiplier: float,
        per_record: bool,
        divisor: float,
        /,
    ) -> dict[str, Any]: ...
    def multiplier_for(self, epsilon: float, /) -> float: ...
    @property
    def spent(self) -> float: ...
    @property
    def budget(self) -> float: ...
    @property
    def releases(self) -> int: ...
