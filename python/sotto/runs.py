"""Federations from config files: plan them, run them, compare them, audit them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Optional

from . import _engine
from .arguments import PathLike, as_json, flag, mapping, path, text, whole
from .documents import Audit, Plan

if TYPE_CHECKING:
    import numpy

Settings = Mapping[str, Any]


def _flat(settings: Settings, above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(mapping(above + name, value), f"{above}{name}.")
        else:
            yield above + name, value


def _overrides(settings: Optional[Settings], more: Settings) -> list[str]:
    """``a.b=value`` for each setting; in keywords two underscores stand for the dot."""
    merged = dict(_flat(mapping("settings", {} if settings is None else settings)))
    merged.update(_flat({name.replace("__", "."): value for name, value in more.items()}))
    return [f"{name}={text(name, value) if isinstance(value, str) else as_json(name, value)}" for name, value in merged.items()]


def _command(*words: str) -> Any:
    return json.loads(_engine.command(list(words)))


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
    if on_round is not None and not callable(on_round):
        raise _engine.Error("on_round must be a function that takes a round")
    listener = None if on_round is None else lambda line: on_round(json.loads(line))
    answer = json.loads(
        _engine.run(
            path("config", config),
            _overrides(settings, overrides),
            "" if out is None else path("out", out),
            "" if home is None else path("home", home),
            flag("resume", resume),
            whole("threads", threads),
            flag("quiet", quiet),
            listener,
        )
    )
    return Run(Path(answer["folder"]), answer["summary"])


def plan(config: PathLike, settings: Optional[Settings] = None, **overrides: Any) -> Plan:
    """What a run would release, how often, with how much noise and at which cost, before anything is trained."""
    return Plan(_command("plan", path("config", config), "--json", "--quiet", *_set_words(_overrides(settings, overrides))))


@dataclass(frozen=True)
class Cell:
    """One row of a sweep's table: settings, and the metric over seeds. The largest epsilon of any client; None: none finite."""

    row: str
    settings: Mapping[str, Any]
    mean: Optional[float]
    std: Optional[float]
    values: list[float]
    runs: list[Path]
    claimed_epsilon: Optional[float]
    proven_epsilon: Optional[float]


@dataclass(frozen=True)
class Sweep:
    """A finished sweep: ``cells`` for programs, ``document`` with everything that `sotto sweep --json` prints."""

    cells: list[Cell]
    document: Mapping[str, Any] = field(repr=False)

    def to_dataframe(self) -> Any:
        """A row per cell, with a column per setting, as a pandas DataFrame."""
        import pandas

        names = ["mean", "std", "claimed_epsilon", "proven_epsilon"]
        return pandas.DataFrame(
            [
                {"row": cell.row, **cell.settings, **{name: getattr(cell, name) for name in names}, "seeds": len(cell.values)}
                for cell in self.cells
            ]
        )


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
    words = ["sweep", path("config", config), "--json", *_set_words(_overrides(settings, overrides))]
    if out is not None:
        words += ["--out", path("out", out)]
    if metric is not None:
        words += ["--metric", text("metric", metric)]
    if whole("threads", threads):
        words += ["--threads", str(threads)]
    if flag("quiet", quiet):
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
            claimed_epsilon=cell["claimed_epsilon"],
            proven_epsilon=cell["proven_epsilon"],
        )
        for cell in document["cells"]
    ]
    return Sweep(cells, document)


def audit(target: PathLike, *, quick: bool = False, quiet: bool = True) -> Audit:
    """Attacks a run, or what a config would release: lower bounds on epsilon, as ``audit.json`` holds them."""
    words = ["audit", path("target", target), "--json"]
    if flag("quick", quick):
        words.append("--quick")
    if flag("quiet", quiet):
        words.append("--quiet")
    return Audit(_command(*words))
