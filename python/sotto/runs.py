"""Federations from config files: plan them, run them, compare them, audit them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Union

from . import _engine

if TYPE_CHECKING:
    import numpy

PathLike = Union[str, "os.PathLike[str]"]
Settings = Mapping[str, Any]


def _overrides(settings: Optional[Settings], more: Settings) -> list[str]:
    """``a.b=value`` for each setting; in keywords two underscores stand for the dot."""
    merged = dict(settings or {})
    merged.update({name.replace("__", "."): value for name, value in more.items()})
    return [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in merged.items()]


def _command(*words: PathLike) -> Any:
    return json.loads(_engine.command([os.fspath(word) for word in words]))


def _set_words(overrides: list[str]) -> list[str]:
    return [word for override in overrides for word in ("--set", override)]


@dataclass(frozen=True)
class Run:
    """A finished run: its folder and what came out of it (``summary.json``)."""

    folder: Path
    summary: Mapping[str, Any] = field(repr=False)

    @property
    def accuracy(self) -> float:
        """Mean over clients, each on its own held-out records."""
        return self.summary["accuracy"]["mean"]

    @property
    def client_accuracy(self) -> numpy.ndarray:
        """Of every evaluated client, in the order of their numbers; NaN where it is not defined."""
        import numpy

        scores = self.summary["accuracy"]["per_client"]
        values = [scores[client] for client in sorted(scores, key=int)]
        return numpy.array([numpy.nan if value is None else value for value in values])

    @property
    def claimed_epsilon(self) -> Optional[float]:
        """The largest of any client; None if there is none."""
        spread = self.summary["privacy"]["claimed_epsilon"]
        return None if spread is None else spread["max"]

    @property
    def proven_epsilon(self) -> Optional[float]:
        """The largest of any client; None if nothing can be proven. ``basis`` says what it is worth."""
        spread = self.summary["privacy"]["proven_epsilon"]
        return None if spread is None else spread["max"]

    @property
    def basis(self) -> str:
        """"proven", or "simulated" where the noise can be recomputed from the seed."""
        return self.summary["privacy"]["basis"]

    @property
    def rounds(self) -> list[dict[str, Any]]:
        """A dictionary per round: the lines of ``metrics.jsonl``."""
        with open(self.folder / "metrics.jsonl", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def to_dataframe(self) -> Any:
        """The rounds as a pandas DataFrame, a row each, scores of clients left out."""
        import pandas

        rows = []
        for line in self.rounds:
            row = {key: value for key, value in line.items() if not isinstance(value, (dict, list))}
            for name, score in line.get("evaluation", {}).items():
                row[name] = score["mean"] if isinstance(score, dict) and "mean" in score else score
            rows.append({key: value for key, value in row.items() if not isinstance(value, dict)})
        return pandas.DataFrame(rows)


def run(
    config: PathLike,
    settings: Optional[Settings] = None,
    *,
    out: Optional[PathLike] = None,
    home: Optional[PathLike] = None,
    resume: bool = False,
    threads: int = 0,
    quiet: bool = True,
    on_round: Optional[Callable[[dict[str, Any]], None]] = None,
    **overrides: Any,
) -> Run:
    """Runs a federation into a run directory.

    ``settings`` change keys of the config, as ``{"privacy.epsilon": 1}``; so do further keywords, with two underscores
    for the dot: ``privacy__epsilon=1``. ``on_round`` gets every round as it is done; what it raises stops the run.
    Ctrl-C stops after the round in progress, and ``resume=True`` goes on from there. ``home`` charges an owner's budget.
    """
    listener = None if on_round is None else lambda line: on_round(json.loads(line))
    answer = json.loads(
        _engine.run(
            os.fspath(config),
            _overrides(settings, overrides),
            "" if out is None else os.fspath(out),
            "" if home is None else os.fspath(home),
            resume,
            threads,
            quiet,
            listener,
        )
    )
    return Run(Path(answer["folder"]), answer["summary"])


def plan(config: PathLike, settings: Optional[Settings] = None, **overrides: Any) -> dict[str, Any]:
    """What a run would release, how often, with how much noise and at which cost, before anything is trained."""
    return _command("plan", config, "--json", "--quiet", *_set_words(_overrides(settings, overrides)))


@dataclass(frozen=True)
class Cell:
    """One row of a sweep's table: settings, and the metric over seeds."""

    row: str
    settings: Mapping[str, Any]
    mean: Optional[float]
    std: Optional[float]
    values: list[float]
    runs: list[Path]


@dataclass(frozen=True)
class Sweep:
    """A finished sweep: ``cells`` for programs, ``document`` with everything that `sotto sweep --json` prints."""

    cells: list[Cell]
    document: Mapping[str, Any] = field(repr=False)


def sweep(
    config: PathLike,
    settings: Optional[Settings] = None,
    *,
    out: Optional[PathLike] = None,
    metric: Optional[str] = None,
    threads: int = 0,
    quiet: bool = True,
    **overrides: Any,
) -> Sweep:
    """Runs the grid of a config's ``[sweep]``; runs that are done already are not run again."""
    words: list[PathLike] = ["sweep", config, "--json", *_set_words(_overrides(settings, overrides))]
    if out is not None:
        words += ["--out", out]
    if metric is not None:
        words += ["--metric", metric]
    if threads:
        words += ["--threads", str(threads)]
    if quiet:
        words.append("--quiet")
    document = _command(*words)
    cells = [
        Cell(
            row=cell.get("row") or "",
            settings=cell["settings"],
            mean=cell["mean"],
            std=cell["std"],
            values=cell["values"],
            runs=[Path(folder) for folder in cell["runs"]],
        )
        for cell in document["cells"]
    ]
    return Sweep(cells, document)


def audit(target: PathLike, *, quick: bool = False, quiet: bool = True) -> dict[str, Any]:
    """Attacks a run, or what a config would release: lower bounds on epsilon, as ``audit.json`` holds them."""
    words: list[PathLike] = ["audit", target, "--json"]
    if quick:
        words.append("--quick")
    if quiet:
        words.append("--quiet")
    return _command(*words)
