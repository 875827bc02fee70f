"""The folder of one run: what was asked for, what was done to the cluster, what was seen, and the verdict on it.

run.json        what was run, and the line that repeats it (RunRecord)
schedule.json   the faults, as they were planned
history.jsonl   what the clients and the nemesis did (histories.history_file), maybe compressed (.gz)
end.json        what was seen when it was over (EndOfRun)
cluster.jsonl   what the cluster looked like (cluster_sample)
verdict.json    what the checkers say
report.html     all of it to look at
clients/        each client's own history and output, as it was written
nodes/          the nodes' data, logs and properties
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from ...local.errors import ClusterError
from ..faults.kinds import Breaker

FORMAT: Final = "penstock-run/1"
PENSTOCK: Final = "penstock"
APACHE_KAFKA: Final = "apache-kafka"
GIVEN: Final = "bootstrap"
"""What `cluster` of a record may be: a cluster that the run starts, or one that others started."""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What was run. `seconds` are those with faults, `began` is UTC in ISO 8601."""

    workload: str
    nemeses: tuple[str, ...]
    seconds: float
    nodes: int
    seed: int
    cluster: str
    """`penstock`, `apache-kafka`, or `bootstrap` for one that others started."""
    version: str
    """Of what the nodes run; empty where it is not known."""
    links: Breaker = "proxies"
    """What breaks the links of a cluster of Penstock; no other cluster's links are broken."""
    properties: dict[str, str] = msgspec.field(default_factory=dict)
    bootstrap: str | None = None
    schedule: str | None = None
    """The file in which the faults were written; None when they were drawn from the seed."""
    began: str = ""
    machine: str = ""
    format: str = FORMAT

    @property
    def schedule_path(self) -> Path:
        assert self.schedule is not None, "faults are drawn where no file has them"
        return Path(self.schedule)

    @property
    def replay(self) -> str:
        """The line that repeats the run: the same cluster, clients and faults at the same times."""
        words = ["penstock", "chaos", "run", "--workload", self.workload]
        if self.schedule is not None:
            words += ["--schedule", self.schedule]
        elif self.nemeses:
            words += ["--nemesis", ",".join(self.nemeses)]
        if self.schedule is None:
            words += ["--time", f"{self.seconds:g}"]
        words += ["--seed", str(self.seed)]
        if self.bootstrap is not None:
            words += ["--bootstrap", self.bootstrap]
        else:
            words += ["--nodes", str(self.nodes), "--cluster", self.cluster]
        if self.cluster == PENSTOCK:
            words += ["--links", self.links]
        for key, value in self.properties.items():
            words += ["--set", f"{key}={value}"]
        return shlex.join(words)


class EndedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node whose process ended though the run had not told it to. `time` is in nanoseconds since the run began;
    a negative `exit_status` is a signal, null one that is not known; `log_tail` has the last lines of its log."""

    node: int
    time: int
    exit_status: int | None
    sentence: str
    log_tail: str = ""


class EndOfRun(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen when a run was over, a sentence each.

    `lacks` is what the cluster lacked long after everything had healed. `failures` are clients that did not end as they
    should: one that never came to the end of its final reads, for one. `ended` are nodes, whenever it was in the run.
    """

    lacks: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    ended: tuple[EndedNode, ...] = ()


class RunFolder(Struct, frozen=True):
    """Paths only; nothing need exist."""

    path: Path

    @property
    def run(self) -> Path:
        return self.path / "run.json"

    @property
    def schedule(self) -> Path:
        return self.path / "schedule.json"

    @property
    def history(self) -> Path:
        return self.path / "history.jsonl"

    @property
    def end(self) -> Path:
        return self.path / "end.json"

    @property
    def samples(self) -> Path:
        return self.path / "cluster.jsonl"

    @property
    def verdict(self) -> Path:
        return self.path / "verdict.json"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def clients(self) -> Path:
        return self.path / "clients"

    @property
    def nodes(self) -> Path:
        return self.path / "nodes"

    def create(self) -> None:
        """Raises ClusterError when something lies in it already: a run never overwrites another."""
        if self.path.exists() and any(self.path.iterdir()):
            raise ClusterError(f"{self.path} is not empty, and a run needs a folder of its own")
        self.clients.mkdir(parents=True)
        self.nodes.mkdir()

    def found_history(self) -> Path:
        """The file of the history, as it is or compressed. Raises ClusterError where there is neither."""
        compressed = self.history.with_name(f"{self.history.name}.gz")
        for path in (self.history, compressed):
            if path.exists():
                return path
        raise ClusterError(f"{self.path} is not the folder of a run: it has no {self.history.name}")

    def write_end(self, end: EndOfRun) -> None:
        self.end.write_bytes(msgspec.json.format(msgspec.json.encode(end), indent=2) + b"\n")

    def read_end(self) -> EndOfRun:
        """Of a folder without end.json, one that lacks nothing. Raises ClusterError for a file of another form."""
        try:
            return msgspec.json.decode(self.end.read_bytes(), type=EndOfRun)
        except FileNotFoundError:
            return EndOfRun()
        except msgspec.MsgspecError as error:
            raise ClusterError(f"{self.end} does not tell the end of a run: {error}") from error

    def write_record(self, record: RunRecord) -> None:
        self.run.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")

    def read_record(self) -> RunRecord:
        """Raises ClusterError when the folder has no run.json, or one that is not as this version writes it."""
        try:
            record = msgspec.json.decode(self.run.read_bytes(), type=RunRecord)
        except FileNotFoundError:
            raise ClusterError(f"{self.path} is not the folder of a run: it has no {self.run.name}") from None
        except msgspec.MsgspecError as error:
            raise ClusterError(f"{self.run} does not describe a run: {error}") from error
        if record.format != FORMAT:
            raise ClusterError(f"{self.run} is of the form {record.format!r}, and this version reads {FORMAT!r}")
        return record
