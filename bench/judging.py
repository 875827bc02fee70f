"""How long a verdict takes: `python -m penstock.bench.judging --operations 10000000` makes a history and judges it.

The history is that of a healthy cluster. `queue`: producers and consumers of a few partitions, each record polled once
by each of two groups of consumers. `register`: writes and reads of a hundred registers. Operations overlap. The judge
reads the file as `penstock chaos judge` does.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

import click

from ..chaos.checkers.catalogue import checkers_of
from ..chaos.checkers.judge import judge
from ..chaos.histories.history_file import open_history, write_history
from ..chaos.histories.operation import Header
from ..client import clock

_PARTITIONS: Final = 8
_GROUPS: Final = 2
_PROCESSES: Final = 16
_REGISTERS: Final = 100
# Records that one poll returns of a partition.
_POLLED_MAX: Final = 8


@click.command()
@click.option("--operations", "count", type=click.IntRange(min=1), default=1_000_000, show_default=True)
@click.option("--workload", type=click.Choice(["queue", "register"]), default="queue", show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
def main(count: int, workload: str, seed: int) -> None:
    """Judge a history of so many operations; print one JSON object."""
    with TemporaryDirectory(prefix="penstock-judging-") as folder:
        path = Path(folder) / "history.jsonl"
        header = Header(workload=workload)
        write_history(path, header, ())
        with path.open("a") as file:
            file.writelines((register_lines if workload == "register" else queue_lines)(count, Random(seed)))
        began = clock.monotonic_s()
        history = open_history(path)
        verdict = judge(history, checkers_of(header))
        seconds = clock.monotonic_s() - began
        figures = {
            "operations": count,
            "bytes": path.stat().st_size,
            "verdict": verdict.valid,
            "counts": verdict.counts,
            "writes": verdict.statistics[workload]["writes" if workload == "register" else "sends"],
            "reads": verdict.statistics[workload]["reads"],
            "seconds": round(seconds, 1),
            "operations_s": round(count / seconds),
            "rss_max_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
    click.echo(json.dumps(figures))


def queue_lines(count: int, random: Random) -> Iterator[str]:
    """Events of `count` operations. Processes take turns at random: the first half of them sends, the others poll."""
    ends = [0] * _PARTITIONS
    positions = [[0] * _PARTITIONS for _ in range(_GROUPS)]
    # What each process completes with next; empty while it does nothing.
    pending = [""] * _PROCESSES
    index = 0
    done = 0
    while done < count:
        process = random.getrandbits(30) % _PROCESSES
        told = pending[process]
        is_sender = process < _PROCESSES // 2
        head = f'"index":{index},"process":{process},"time":{index * 50_000},'
        index += 1
        if told:
            if told == "poll":
                told = _polled(positions[process % _GROUPS], ends, process)
            pending[process] = ""
            done += 1
            yield f'{{"type":"ok",{head}{told}}}\n'
        elif is_sender:
            key = random.getrandbits(30) % _PARTITIONS
            value = ends[key]
            ends[key] += 1
            pending[process] = f'"f":"send","value":[["send","t-{key}",[{value},{value}]]]'
            yield f'{{"type":"invoke",{head}"f":"send","value":[["send","t-{key}",{value}]]}}\n'
        else:
            pending[process] = "poll"
            yield f'{{"type":"invoke",{head}"f":"poll","value":[["poll"]]}}\n'


def register_lines(count: int, random: Random) -> Iterator[str]:
    """Events of `count` operations, each of which takes effect at some moment between two events of its process."""
    values = [0] * _REGISTERS
    newest = 0
    # What each process has under way: the register, what it writes, and its answer once it took effect.
    asked: list[tuple[int, int] | None] = [None] * _PROCESSES
    answers: list[str | None] = [None] * _PROCESSES
    index = 0
    done = 0
    while done < count:
        process = random.getrandbits(30) % _PROCESSES
        under_way, answer = asked[process], answers[process]
        if under_way is not None and answer is None:
            register, value = under_way
            if value:
                values[register] = value
            answers[process] = str(values[register] or "null")
            continue
        head = f'"index":{index},"process":{process},"time":{index * 50_000},'
        index += 1
        if under_way is None:
            register, value = random.getrandbits(30) % _REGISTERS, 0
            f, told = "read", f'"k":"r{register}"'
            if random.getrandbits(1):
                newest += 1
                value = newest
                f, told = "write", f'{told},"v":{value}'
            asked[process] = register, value
            yield f'{{"type":"invoke",{head}"f":"{f}","value":{{{told}}}}}\n'
            continue
        register, value = under_way
        asked[process] = answers[process] = None
        done += 1
        f = "write" if value else "read"
        yield f'{{"type":"ok",{head}"f":"{f}","value":{{"k":"r{register}","v":{answer}}}}}\n'


def _polled(positions: list[int], ends: list[int], process: int) -> str:
    """Each consumer of a group has partitions of its own."""
    consumer = (process - _PROCESSES // 2) // _GROUPS
    per_consumer = _PARTITIONS * _GROUPS * 2 // _PROCESSES
    records = []
    for key in range(consumer * per_consumer, (consumer + 1) * per_consumer):
        start = positions[key]
        positions[key] = end = min(ends[key], start + _POLLED_MAX)
        if start < end:
            pairs = ",".join(f"[{offset},{offset}]" for offset in range(start, end))
            records.append(f'"t-{key}":[{pairs}]')
    return f'"f":"poll","value":[["poll",{{{",".join(records)}}}]]'


if __name__ == "__main__":
    main()
