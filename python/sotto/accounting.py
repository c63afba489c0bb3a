"""What releases cost, and how much noise a budget asks for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Optional

from . import _engine
from .arguments import as_json


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta), by which accountant and between which neighbours."""

    epsilon: float
    delta: float
    method: str
    adjacency: str


@dataclass(frozen=True)
class Calibration:
    """The least noise multiplier with which a plan stays within (epsilon, delta)."""

    noise_multiplier: float
    epsilon: float
    delta: float
    method: str
    adjacency: str


def _question(parts: Mapping[str, Any]) -> str:
    given = {key: value for key, value in parts.items() if value is not None}
    return "{" + ", ".join(f'"{key}": {as_json(key, value)}' for key, value in given.items()) + "}"


def _events(compose: Optional[Iterable[Mapping[str, Any]]]) -> Optional[list[Any]]:
    try:
        return None if compose is None else list(compose)
    except TypeError:
        raise _engine.Error("compose must be a list of dictionaries, one for each event") from None


def _only(cls: type, answer: str) -> Any:
    fields = json.loads(answer)
    return cls(**{name: fields[name] for name in cls.__dataclass_fields__})


def account(
    *,
    noise_multiplier: Optional[float] = None,
    steps: Optional[int] = None,
    sampling_rate: Optional[float] = None,
    delta: Optional[float] = None,
    epsilon: Optional[float] = None,
    adjacency: Optional[str] = None,
    mechanism: Optional[str] = None,
    sampling: Optional[str] = None,
    batches: Optional[int] = None,
    epochs: Optional[int] = None,
    step_epsilon: Optional[float] = None,
    step_delta: Optional[float] = None,
    method: Optional[str] = None,
    compose: Optional[Iterable[Mapping[str, Any]]] = None,
) -> Guarantee:
    """What a sequence of releases costs: epsilon at ``delta``, or delta at ``epsilon``.

    ``noise_multiplier`` is the noise's standard deviation over the sensitivity under ``adjacency`` ("add-remove",
    "zero-out", "replace" or "replace-same-label"). ``sampling`` is "none", "poisson" (with ``sampling_rate``) or
    "allocation" (with ``batches`` and ``epochs`` instead of steps). ``compose`` adds further events, each a mapping of
    the same words. Answers are upper bounds, rounded up.
    """
    parts = dict(locals())
    parts["compose"] = _events(compose)
    return _only(Guarantee, _engine.account(_question(parts)))


def calibrate(
    *,
    epsilon: float,
    delta: float,
    steps: Optional[int] = None,
    sampling_rate: Optional[float] = None,
    adjacency: Optional[str] = None,
    mechanism: Optional[str] = None,
    sampling: Optional[str] = None,
    batches: Optional[int] = None,
    epochs: Optional[int] = None,
    method: Optional[str] = None,
    compose: Optional[Iterable[Mapping[str, Any]]] = None,
) -> Calibration:
    """The least noise with which such a plan stays within (``epsilon``, ``delta``); words as in :func:`account`."""
    parts = dict(locals())
    parts["compose"] = _events(compose)
    return _only(Calibration, _engine.calibrate(_question(parts)))
