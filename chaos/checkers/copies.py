"""Whether an application copied each input exactly once, in transactions: what a read_committed reader may find.

The application reads records, writes one output for each, and commits the outputs together with the offsets that it has
read up to. It is killed, its transactions are aborted, by itself and by others. What is judged holds under every fault,
once it has come to the end of its input.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from msgspec import Struct


class Anomaly(Enum):
    LOST = "an input has no output"
    DUPLICATED = "an input has more than one output"
    REORDERED = "outputs of one input partition are not in its order"
    FOREIGN = "an output is of no input"
    ABORTED_READ = "an output was read of a transaction that was not committed"
    TORN = "a part of a transaction's outputs is there"
    LOST_TRANSACTION = "outputs of a committed transaction are not there"


class Place(NamedTuple):
    partition: int
    offset: int


class Output(NamedTuple):
    """What a reader found at a place: the output of the input at `source`."""

    place: Place
    source: Place
    # None when the output does not tell.
    transaction: str | None


class Attempt(Struct, frozen=True, kw_only=True):
    """What the application said of a transaction before and after it asked to commit."""

    # None: it never asked to commit.
    output_count: int | None = None
    # None: the outcome is unknown.
    is_committed: bool | None = None


class Finding(Struct, frozen=True, kw_only=True):
    anomaly: Anomaly
    evidence: str

    def __str__(self) -> str:
        return f"{self.anomaly.name}: {self.anomaly.value}: {self.evidence}"


def judge(
    inputs: Collection[Place], outputs: Sequence[Output], attempts: Mapping[str, Attempt] | None = None
) -> list[Finding]:
    """The anomalies of all that was read committed, each partition in the order of its offsets.

    `attempts` by the names of transactions; without them only inputs and outputs are compared.
    """
    findings: list[Finding] = []

    def find(anomaly: Anomaly, evidence: str) -> None:
        findings.append(Finding(anomaly=anomaly, evidence=evidence))

    known = frozenset(inputs)
    places: dict[Place, list[Place]] = {}
    newest: dict[tuple[int, int], int] = {}
    for output in outputs:
        places.setdefault(output.source, []).append(output.place)
        lane = (output.place.partition, output.source.partition)
        if output.source not in known:
            find(Anomaly.FOREIGN, f"{_at(output.place)} is a copy of {_at(output.source)}")
        elif output.source.offset < newest.get(lane, -1):
            find(Anomaly.REORDERED, f"{_at(output.source)} at {_at(output.place)}, behind {newest[lane]}")
        newest[lane] = max(newest.get(lane, -1), output.source.offset)
    for source, found in places.items():
        if len(found) > 1:
            find(Anomaly.DUPLICATED, f"{_at(source)} at {', '.join(map(_at, found))}")
    for source in sorted(known - places.keys()):
        find(Anomaly.LOST, _at(source))
    if attempts is not None:
        for anomaly, evidence in _judge_attempts(outputs, attempts):
            find(anomaly, evidence)
    return findings


def _judge_attempts(outputs: Sequence[Output], attempts: Mapping[str, Attempt]) -> Iterable[tuple[Anomaly, str]]:
    counts = Counter(output.transaction for output in outputs if output.transaction is not None)
    for name in counts.keys() - attempts.keys():
        yield Anomaly.ABORTED_READ, f"{counts[name]} of {name}, of which nothing was ever told"
    for name, attempt in attempts.items():
        count = counts[name]
        if count and attempt.output_count is None:
            yield Anomaly.ABORTED_READ, f"{count} of {name}, which never asked to commit"
        elif count and attempt.is_committed is False:
            yield Anomaly.ABORTED_READ, f"{count} of {name}, which was aborted"
        elif count and count != attempt.output_count:
            yield Anomaly.TORN, f"{count} of the {attempt.output_count} of {name}"
        elif not count and attempt.is_committed and attempt.output_count:
            yield Anomaly.LOST_TRANSACTION, f"none of the {attempt.output_count} of {name}"


def _at(place: Place) -> str:
    return f"{place.partition}/{place.offset}"
