"""An owner's budget before whatever framework trains."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Mapping, Optional, Union

from . import _engine
from .arguments import PathLike, as_json, flag, mapping, number, path, text

if TYPE_CHECKING:
    import numpy

Array = Any  # a numpy array or a torch tensor
Tensors = Union[Array, Mapping[Any, Array]]
Policy = Union[PathLike, Mapping[str, Any]]


def _as_numpy(label: str, array: Array) -> numpy.ndarray:
    """Contiguous float32 or float64, without a copy where the memory can be shared."""
    import numpy

    try:
        if hasattr(array, "detach"):  # a torch tensor
            array = array.detach().cpu()
            array = (array.float() if str(array.dtype) == "torch.bfloat16" else array).numpy()
        array = numpy.asarray(array)
    except (TypeError, ValueError, RuntimeError):
        raise _engine.Error(f"'{label}' is no array of numbers, but {type(array).__name__}") from None
    if array.dtype.kind not in "fiub":
        raise _engine.Error(f"'{label}' must hold real numbers, not {array.dtype}")
    if array.dtype not in (numpy.float32, numpy.float64):
        array = array.astype(numpy.float32)
    return numpy.require(array, requirements="CA")


def _like(released: numpy.ndarray, given: Array) -> Array:
    if not hasattr(given, "detach"):
        return released
    import torch

    return torch.from_numpy(released)


class Guard:
    """Clips what is to leave, pays for it at a home, adds noise, and gives the same bytes for the same key for ever.

    ``home`` is a folder whose owner has promised something there: ``budget.toml`` with epsilon, delta and adjacency, or
    the table ``[budget]`` of ``policy.toml``. ``policy`` promises it where nothing was promised yet, as a dictionary or
    as such a file; a promise that is there already holds::

        guard = sotto.Guard("home", {"epsilon": 4, "delta": 1e-6, "adjacency": "replace"})
        update = guard.release("update", {"w": w, "b": b}, bound=1.0, epsilon=0.2, key="run 3, round 7")

    ``records`` names the records that the budget is of. One process per home; threads may share a guard, and a forked
    process must open another home.
    """

    def __init__(self, home: PathLike, policy: Optional[Policy] = None, *, records: str = "records"):
        folder = path("home", home)
        name = text("records", records)
        if isinstance(policy, Mapping):
            _engine.promise(folder, as_json("policy", mapping("policy", policy)), False)
        elif isinstance(policy, (str, os.PathLike)):
            _engine.promise(folder, path("policy", policy), True)
        elif policy is not None:
            raise _engine.Error("policy is a dictionary with epsilon, delta and adjacency, or a file that has them")
        self._guard = _engine.Guard(folder, name)
        self.home = Path(folder)

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
        text("the name of a release", name)
        if (noise_multiplier is None) == (epsilon is None):
            raise _engine.Error(f"{name}: give noise_multiplier or epsilon, and not both")
        if noise_multiplier is None:
            noise_multiplier = self._guard.multiplier_for(number("epsilon", epsilon))
        named = tensors if isinstance(tensors, Mapping) else {name: tensors}
        labels = {label: text("the name of a tensor", str(label)) for label in named}
        released = self._guard.release(
            name,
            [(labels[label], _as_numpy(labels[label], array)) for label, array in named.items()],
            text("key", str(key)),
            number("bound", bound),
            number("noise_multiplier", noise_multiplier),
            flag("per_record", per_record),
            number("divisor", divisor),
        )
        if not isinstance(tensors, Mapping):
            return _like(released[name], tensors)
        return {label: _like(released[labels[label]], array) for label, array in tensors.items()}

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
        return self._guard.releases
