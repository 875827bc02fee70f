"""The interpreter that runs are made in, as `command.py` starts it.

Each run is made in a fork of this process. So none leaves anything behind for the next, and a seed alone gives the
same run as a seed among a thousand.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import json
import os
import signal
import sys
import time
import warnings
from argparse import ArgumentParser, BooleanOptionalAction
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import fields
from select import select
from typing import Any, Final, NamedTuple

from .world import World

# Before clients are imported: some of them take hold of a clock then.
REAL_CLOCK: Final = time.perf_counter
WORLD: Final = World()
WORLD.replace(0)

from ...mutants.known_bugs import NAMES, applied  # noqa: E402
from .cluster_result import ClusterRun  # noqa: E402
from .cluster_run import run_cluster  # noqa: E402
from .profiles import PROFILES  # noqa: E402
from .shapes import Choices, shape_of  # noqa: E402

# What nodes import while they start: once here, not in every run.
_LOADED_BY_NODES: Final = (
    ".broker.node.controller_listener",
    ".broker.cluster.remote_controller_channel",
    ".broker.node.voter_link",
    ".quorum.links.stream_links",
    ".quorum.decisions.bootstrap",
    ".quorum.metadata.event_derivation",
    ".quorum.metadata.event_ring",
)
# Of real time: hundreds of times what a run takes.
_RUN_MAX_S: Final = 900.0
# A file has the count of runs every so many: a machine that ends takes no more of a long sweep with it.
_RUNS_PER_LINE: Final = 100
_ENDINGS: Final = (signal.SIGINT, signal.SIGTERM)


class _Job(NamedTuple):
    seed: int
    pid: int
    results: int
    """The descriptor that the outcome comes through."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0 when every run was clean."""
    parser = ArgumentParser(prog="penstock simulate", allow_abbrev=False)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--brokers", type=int)
    parser.add_argument("--log-dirs", type=int)
    parser.add_argument("--members", type=int)
    parser.add_argument("--transactions", action=BooleanOptionalAction)
    parser.add_argument("--compaction", action=BooleanOptionalAction)
    parser.add_argument("--tiers", action=BooleanOptionalAction)
    parser.add_argument("--profile", choices=sorted(PROFILES))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--faults-s", type=float, default=20.0)
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--mutant", choices=sorted(NAMES))
    parser.add_argument("--until-failure", action="store_true")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    for name in _LOADED_BY_NODES:
        importlib.import_module(name, "penstock")
    gc.disable()
    gc.freeze()
    started_s = REAL_CLOCK()
    total = _Total()
    # Ended early, it prints the summary of the runs until then.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt), closing(_runs(options)) as runs:
        for seed, run in runs:
            total.add(seed, run, options)
            total.tell_progress(options.seeds)
            if options.until_failure and not total.is_clean:
                break
    if sys.stderr.isatty():
        sys.stderr.write("\n")
    sys.stdout.write(total.summary(REAL_CLOCK() - started_s))
    return 0 if total.is_clean else 1


def _runs(options: Any) -> Generator[tuple[int, ClusterRun | None], None, None]:
    seeds = iter(range(options.first, options.first + options.seeds))
    jobs: list[_Job] = []
    try:
        while True:
            while len(jobs) < options.jobs and (seed := next(seeds, None)) is not None:
                # An interruption within a fork is lost, and one after it would leave a run that is not in `jobs`.
                signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)
                jobs.append(_begin(seed, options))
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDINGS)
            if not jobs:
                return
            # Whichever ends first: a run may take ten times as long as another.
            ended, _, _ = select([job.results for job in jobs], [], [])
            job = next(job for job in jobs if job.results in ended)
            run = _end(job)
            jobs.remove(job)
            yield job.seed, run
    finally:
        for job in jobs:
            os.kill(job.pid, signal.SIGKILL)
            os.waitpid(job.pid, 0)


def _begin(seed: int, options: Any) -> _Job:
    sys.stdout.flush()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return _Job(seed, pid, reading)
    status = 1
    # Ctrl-C comes to all processes of a terminal.
    for ending in _ENDINGS:
        signal.signal(ending, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDINGS)
    try:
        os.close(reading)
        with ExitStack() as patches:
            if options.mutant is not None:
                patches.enter_context(applied(options.mutant))
            # A run that does not end tells where it is, and counts as one that broke off.
            faulthandler.dump_traceback_later(_RUN_MAX_S, exit=True)
            run = run_cluster(WORLD, seed, _choices(options), trace=_print_line if options.trace else None)
            faulthandler.cancel_dump_traceback_later()
        with os.fdopen(writing, "w") as results:
            json.dump({field.name: getattr(run, field.name) for field in fields(run)}, results)
        status = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        if status:
            sys.excepthook(*sys.exc_info())
        os._exit(status)


def _choices(options: Any) -> Choices:
    return Choices(**{name: getattr(options, name) for name in Choices.__struct_fields__})


def _print_line(line: str) -> None:
    sys.stdout.write(line + "\n")


def _end(job: _Job) -> ClusterRun | None:
    """None when the run did not come to an end."""
    with os.fdopen(job.results) as results:
        text = results.read()
    os.waitpid(job.pid, 0)
    if not text:
        return None
    values = json.loads(text)
    values |= {name: Counter(values[name]) for name in ("faults", "operations", "zombies", "client_errors")}
    return ClusterRun(**values)


class _Total:
    def __init__(self) -> None:
        self.run_count = 0
        self._unclean_count = 0
        self._virtual_s = 0.0
        self._counts: Counter[str] = Counter()
        self._faults: Counter[str] = Counter()
        self._operations: Counter[str] = Counter()
        self._zombies: Counter[str] = Counter()

    @property
    def is_clean(self) -> bool:
        return not self._unclean_count

    def add(self, seed: int, run: ClusterRun | None, options: Any) -> None:
        self.run_count += 1
        if run is not None:
            self._virtual_s += run.virtual_s
            self._faults += run.faults
            self._operations += run.operations
            self._zombies += run.zombies
            self._counts.update(
                {
                    "acknowledged records": run.acknowledged_count,
                    "records read": run.read_count,
                    "records deleted": run.deleted_count,
                    "leaderships": run.leader_epoch_count,
                    "states checked": run.check_count,
                    "offsets committed": run.commit_count,
                    "transactions committed": run.transaction_count,
                    "records compacted away": run.compacted_count,
                    "segments copied to the tier": run.tiered_count,
                    "segments deleted from the tier": run.untiered_count,
                    "replicas read from their files": run.file_check_count,
                    "healthy brokers fenced": run.fenced_count,
                }
            )
        if run is None or not run.is_clean:
            self._unclean_count += 1
            reasons = ["it broke off, see above"] if run is None else run.violations or ["not live after healing"]
            sys.stdout.write(f"seed {seed}: {'; '.join(reasons)}\n  replay: {_replay(seed, options)}\n")
            sys.stdout.flush()
        elif options.trace:
            sys.stdout.write(f"seed {seed}: clean, trace {run.trace_hash}\n")

    def tell_progress(self, seeds: int) -> None:
        line = f"{self.run_count} of {seeds} runs, {self._unclean_count} not clean"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{line} ")
        elif self.run_count % _RUNS_PER_LINE == 0:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

    def summary(self, real_s: float) -> str:
        hours_per_minute = self._virtual_s / 3600 / (real_s / 60)
        lines = [
            f"{self.run_count} runs in {real_s:.0f} s: {self.run_count / real_s:.2f} runs/s, "
            f"{hours_per_minute:.2f} virtual hours per minute",
            ", ".join(f"{count:,} {what}" for what, count in self._counts.items()),
            *(
                f"{counts.total():,} {title}: "
                + (", ".join(f"{count:,} {what}" for what, count in sorted(counts.items())) or "none")
                for title, counts in (
                    ("faults", self._faults),
                    ("operations", self._operations),
                    ("requests of zombies", self._zombies),
                )
            ),
        ]
        return "\n".join(lines) + "\n"


def _replay(seed: int, options: Any) -> str:
    """With all that the seed chose as options: they stay what they are when seeds come to choose otherwise."""
    more = "" if options.mutant is None else f" --mutant {options.mutant}"
    return f"penstock simulate --seed {seed} --trace {shape_of(seed, _choices(options)).options}{more}"


if __name__ == "__main__":
    sys.exit(main())
