"""Typed results: what the program prints as JSON, with the words that programs need as attributes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Iterator, Mapping, Optional, Type, TypeVar

Row = TypeVar("Row")


class Document(Mapping[str, Any]):
    """A dictionary that is only read: all that the program prints with ``--json``."""

    def __init__(self, content: Mapping[str, Any]):
        self._content = content

    def __getitem__(self, key: str) -> Any:
        return self._content[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self._content)!r})"


def row_of(cls: Type[Row], entry: Mapping[str, Any]) -> Row:
    """The fields of ``cls`` that ``entry`` has; those it lacks are None."""
    return cls(**{field.name: entry.get(field.name) for field in fields(cls)})  # type: ignore[arg-type]


def table(rows: list[Any]) -> Any:
    """A pandas DataFrame with a row each."""
    import pandas

    return pandas.DataFrame([asdict(row) for row in rows])


@dataclass(frozen=True)
class PlannedRelease:
    """What a client would release: how often, how loud the noise, at which cost. None where nothing is noised."""

    what: str
    observer: str
    mechanism: str
    times: int
    epsilon: Optional[float]
    noise_multiplier: Optional[float]
    noise_stddev: Optional[float]
    sensitivity: Optional[float]
    sampling_rate: Optional[float]
    coordinates: Optional[int]
    why_unproven: Optional[str]


class Plan(Document):
    """What a run would do and release."""

    @property
    def method(self) -> str:
        return self["method"]

    @property
    def model(self) -> str:
        return self["model"]

    @property
    def clients(self) -> int:
        return self["clients"]

    @property
    def rounds(self) -> int:
        return self["rounds"]

    @property
    def releases(self) -> list[PlannedRelease]:
        """Of a client with the median number of records."""
        return [row_of(PlannedRelease, release) for release in self["releases"]]

    def to_dataframe(self) -> Any:
        """The releases as a pandas DataFrame."""
        return table(self.releases)


@dataclass(frozen=True)
class Attacked:
    """One attack: the lower bound that it gives beside what is claimed and proven (None: no finite one)."""

    name: str
    what: str
    observer: str
    claimed_epsilon: Optional[float]
    proven_epsilon: Optional[float]
    audited_epsilon: float
    verdict: str
    trials: int


class Audit(Document):
    """What attacks found."""

    @property
    def entries(self) -> list[Attacked]:
        return [row_of(Attacked, entry) for entry in self["entries"]]

    @property
    def confidence(self) -> float:
        return self["confidence"]

    def to_dataframe(self) -> Any:
        """A row per attack, as a pandas DataFrame."""
        return table(self.entries)


@dataclass(frozen=True)
class Spending:
    """What one client has spent in the eyes of the observer whom the promise names; None: no finite epsilon."""

    client: int
    name: str
    releases: int
    budget: Optional[float]
    proven_epsilon: Optional[float]


class Statement(Document):
    """What was released, and what it cost each client."""

    @property
    def rows(self) -> int:
        return self["rows"]

    @property
    def clients(self) -> list[Spending]:
        terms = self["terms"] or {}
        observer = "server" if terms.get("observer", "server") == "server" else "clients"
        return [
            Spending(
                client=entry["client"],
                name=entry.get("name", f"client {entry['client']}"),
                releases=entry["releases"],
                budget=entry["budget"],
                proven_epsilon=entry["spent"] if "spent" in entry else entry[observer]["proven_epsilon"],
            )
            for entry in self["clients"]
        ]

    def to_dataframe(self) -> Any:
        """A row per client, as a pandas DataFrame."""
        return table(self.clients)


class Verification(Document):
    """Of a ledger whose chain is intact and whose budgets were kept; any other is an Error."""

    @property
    def rows(self) -> int:
        return self["rows"]
