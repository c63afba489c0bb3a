"""An owner's budget before whatever framework trains."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Optional, Union

from . import _engine
from .runs import PathLike

if TYPE_CHECKING:
    import numpy

Array = Any  # a numpy array or a torch tensor
Tensors = Union[Array, Mapping[str, Array]]


def _as_numpy(array: Array) -> numpy.ndarray:
    """Without a copy where the memory can be shared."""
    import numpy

    if hasattr(array, "detach"):  # a torch tensor
        array = array.detach().cpu().numpy()
    array = numpy.asarray(array)
    if array.dtype not in (numpy.float32, numpy.float64):
        array = array.astype(numpy.float32)
    return numpy.ascontiguousarray(array)


def _like(released: numpy.ndarray, given: Array) -> Array:
    if not hasattr(given, "detach"):
        return released
    import torch

    return torch.from_numpy(released)


class Guard:
    """Clips what is to leave, pays for it at a home, adds noise, and gives the same bytes for the same key for ever.

    ``home`` is a folder with a ``budget.toml`` (epsilon, delta, adjacency), or ``budget`` writes one there, once::

        guard = sotto.Guard("home", budget={"epsilon": 4, "delta": 1e-6, "adjacency": "replace"})
        update = guard.release("update", {"w": w, "b": b}, bound=1.0, epsilon=0.2, key="run 3, round 7")

    ``records`` names the records that the budget is of. One process per home; threads may share a guard.
    """

    def __init__(self, home: PathLike, *, records: str = "records", budget: Optional[Mapping[str, Any]] = None):
        folder = Path(home)
        if budget is not None and not (folder / "budget.toml").exists():
            folder.mkdir(parents=True, exist_ok=True)
            lines = [f"{key} = {value!r}".replace("'", '"') for key, value in budget.items()]
            (folder / "budget.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._guard = _engine.Guard(os.fspath(folder), records)
        self.home = folder

    def release(
        self,
        name: str,
        tensors: Tensors,
        *,
        bound: float,
        key: str,
        noise_multiplier: Optional[float] = None,
        epsilon: Optional[float] = None,
        per_record: bool = False,
        divisor: float = 1.0,
    ) -> Tensors:
        """What may leave: an array for an array, a dictionary for a dictionary.

        All tensors together are clipped to the l2 norm ``bound``. Noise is ``noise_multiplier`` times what one change
        can move, or as much as one release of ``epsilon`` needs. With ``per_record`` tensors are [records, ...]: each
        record's part is clipped, and the parts are summed and divided by ``divisor``, a public number.

        A ``key`` that was used before gives what left then, whatever the tensors are now, and costs nothing.
        Raises ``BudgetSpent`` if the home's budget does not allow it: then nothing was computed or written.
        """
        if (noise_multiplier is None) == (epsilon is None):
            raise _engine.Error(f"{name}: give noise_multiplier or epsilon, and not both")
        if noise_multiplier is None:
            noise_multiplier = self._guard.multiplier_for(epsilon)
        named = tensors if isinstance(tensors, Mapping) else {name: tensors}
        arrays = [(str(label), _as_numpy(array)) for label, array in named.items()]
        released = self._guard.release(name, arrays, str(key), bound, noise_multiplier, per_record, divisor)
        if not isinstance(tensors, Mapping):
            return _like(released[name], tensors)
        return {label: _like(released[str(label)], array) for label, array in tensors.items()}

    @property
    def budget(self) -> float:
        """The epsilon that the home's owner allows in all."""
        return self._guard.budget

    @property
    def spent(self) -> float:
        """The epsilon of all that was released so far."""
        return self._guard.spent

    @property
    def releases(self) -> int:
        """How many there were."""
        return self._guard.rows
