"""One run of the quorum from one seed: faults, load, then a healed network in which everything must come together.

    python -m penstock.chaos.simulation.quorum_run --seeds 100

prints runs, what was acknowledged, and each violation with the seed that replays it.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random

from ..mutants.quorum_mutants import MUTANTS, mutant_named
from .controlled_voter import ControlledVoter
from .network import HOSTILE, STREAMS, Network
from .quorum_faults import QuorumFaults
from .quorum_judge import QuorumJudge
from .simulated_voter import SimulatedVoter
from .virtual_loop import VirtualLoop

# In seconds of the simulation.
_FAULTS_S = 20.0
_HEALED_S = 25.0
_TURN_S = 0.02

_MODULE = "penstock.chaos.simulation.quorum_run"
_FLAGS = ("streams", "controllers")


@dataclass(slots=True, kw_only=True)
class QuorumRun:
    """What a run came to."""

    seed: int
    violations: list[str]
    is_live: bool
    acknowledged_count: int
    barrier_count: int
    term_count: int
    counts: Counter[str]
    trace_hash: str
    trace: list[str] = field(default_factory=list)


def run_quorum(
    seed: int,
    *,
    voter_count: int = 3,
    is_hostile: bool = True,
    has_controllers: bool = False,
    keeps_trace: bool = False,
    faults_s: float = _FAULTS_S,
) -> QuorumRun:
    """Run and judge. The same arguments give the same run, message by message.

    With `has_controllers` clients ask the product's controllers for decisions, else they propose commands.
    """
    voter_class = ControlledVoter if has_controllers else SimulatedVoter
    with VirtualLoop() as loop:
        return _Simulation(loop, seed, voter_count, is_hostile, voter_class, keeps_trace).run(faults_s)


class _Simulation:
    def __init__(
        self, loop: VirtualLoop, seed: int, voter_count: int, is_hostile: bool, voter_class: type[SimulatedVoter],
        keeps_trace: bool,
    ) -> None:  # fmt: skip
        self._loop = loop
        self._seed = seed
        self._random = random = Random(seed)
        self._hash = sha256()
        self._trace_lines: list[str] | None = [] if keeps_trace else None
        self._judge = QuorumJudge()
        self._network = Network(loop, random, HOSTILE if is_hostile else STREAMS, self._trace)
        self._is_hostile = is_hostile
        ids = tuple(range(1, voter_count + 1))
        self._voters = {
            node_id: voter_class(
                node_id, ids, loop=loop, network=self._network, judge=self._judge,
                random=Random(random.getrandbits(64)), trace=self._trace,
            )
            for node_id in ids
        }  # fmt: skip
        self._faults = faults = QuorumFaults(self._voters, network=self._network, random=random, trace=self._trace)
        self._command_count = 0
        self._actions: tuple[tuple[float, Callable[[], None]], ...] = (
            (0.010, faults.kill),
            (0.012, faults.lose_power),
            (0.004, faults.black_out),
            (0.050, faults.start),
            (0.014, faults.cut),
            (0.004, faults.partition),
            (0.010, faults.isolate_leader),
            (0.018, faults.heal),
            (0.010, faults.break_link),
            (0.010, faults.pause),
            (0.040, faults.resume),
            (0.060, self._save_snapshot),
            (0.300, self._read),
            (0.006, self._transfer),
            (0.006, faults.fail_disk),
            (0.004, faults.fill_disk),
            (0.010, faults.swap_disk),
            # A leader that is refused for is of little use, so most runs do without.
            *(((0.008, faults.refuse),) if seed % 4 == 1 else ()),
        )

    def _trace(self, line: str) -> None:
        line = f"{self._loop.time():.6f} {line}"
        self._hash.update(line.encode() + b"\n")
        if self._trace_lines is not None:
            self._trace_lines.append(line)

    def run(self, faults_s: float) -> QuorumRun:
        for voter in self._voters.values():
            voter.start()
        end_s = self._loop.time() + faults_s
        while self._loop.time() < end_s and not self._judge.violations:
            self._pass(self._random.uniform(0, 2 * _TURN_S))
            self._load()
            for chance, action in self._actions:
                if self._random.random() < chance:
                    action()
        is_live = not self._judge.violations and self._come_together()
        if is_live:
            for node_id, voter in self._voters.items():
                self._judge.on_state(node_id, voter.kept)
        for voter in self._voters.values():
            if voter.is_up:
                voter.kill(has_power=True)
        self._pass(0)
        return QuorumRun(
            seed=self._seed,
            violations=self._judge.violations,
            is_live=is_live,
            acknowledged_count=len(self._judge.acknowledged),
            barrier_count=self._judge.barrier_count,
            term_count=len(self._judge.leaders),
            counts=self._faults.counts + self._network.counts + Counter(self._torn_counts()),
            trace_hash=self._hash.hexdigest(),
            trace=self._trace_lines or [],
        )

    def _torn_counts(self) -> dict[str, int]:
        return {"torn writes": sum(voter.torn_count for voter in self._voters.values())}

    def _pass(self, duration_s: float) -> None:
        """Let time pass."""
        stopped = self._loop.create_future()
        self._loop.call_later(duration_s, stopped.set_result, None)
        self._loop.run_until_complete(stopped)

    def _load(self) -> None:
        if sum(voter.is_leader for voter in self._voters.values()) > 1:
            # One of them has been replaced and does not know it yet: what does it answer?
            self._read()
        if self._random.random() < 0.5:
            for voter in self._voters.values():
                if voter.is_leader and voter.node_id not in self._faults.paused:
                    for _ in range(self._random.choice((1, 1, 1, 3, 8))):
                        self._command_count += 1
                        padding = b"." * (self._random.randrange(3_000) if self._random.random() < 0.02 else 0)
                        voter.propose(b"%d.%d" % (self._seed, self._command_count) + padding)

    def _come_together(self) -> bool:
        """Heal everything; return whether all voters follow one leader that commits."""
        self._trace("heal")
        self._network.mode = STREAMS
        for voter in self._voters.values():
            voter.files.heal()
            voter.files.capacity_bytes = None
        for node_id in sorted(self._faults.paused):
            self._faults.resume_node(node_id)
        for source_id, target_id in self._network.cuts:
            self._network.heal(source_id, target_id)
        end_s = self._loop.time() + _HEALED_S
        last: bytes | None = None
        while self._loop.time() < end_s and not self._judge.violations:
            for voter in self._voters.values():
                if voter.has_failed and voter.is_up:
                    self._faults.end(voter, has_power=True)
                if not voter.is_up:
                    voter.start()
            self._pass(0.2)
            leaders = [voter for voter in self._voters.values() if voter.is_leader]
            if last in self._judge.acknowledged and leaders and self._is_one(leaders[0]):
                return True
            if leaders and (last is None or last not in self._judge.acknowledged):
                self._command_count += 1
                last = b"%d.last%d" % (self._seed, self._command_count)
                leaders[-1].propose(last)
        return False

    def _is_one(self, leader: SimulatedVoter) -> bool:
        """Every voter's disk counts, and every voter is in the leader's state."""
        return all(
            voter.voter is not None
            and voter.voter.is_member
            and voter.heard_end == leader.heard_end
            and voter.state == leader.state
            for voter in self._voters.values()
        )

    # What voters are asked beside commands.

    def _save_snapshot(self) -> None:
        voter = self._faults.choose([voter for voter in self._voters.values() if voter.is_up])
        if voter is not None and voter.save_snapshot():
            self._faults.note("save", voter.node_id)

    def _read(self) -> None:
        for voter in self._voters.values():
            if voter.is_leader and voter.node_id not in self._faults.paused:
                voter.read()

    def _transfer(self) -> None:
        for voter in self._voters.values():
            if voter.is_leader and voter.node_id not in self._faults.paused:
                self._faults.counts["transfer"] += 1
                voter.transfer(self._random.choice((None, self._faults.pair()[0])))


def main() -> None:
    parser = ArgumentParser(prog=_MODULE, description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=100, help="how many runs")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--voters", type=int, default=3)
    parser.add_argument("--streams", action="store_true", help="a network that keeps the order, as real links do")
    parser.add_argument("--controllers", action="store_true", help="voters with the product's controllers on top")
    parser.add_argument("--trace", action="store_true", help="print everything that happens")
    parser.add_argument("--faults-s", type=float, default=_FAULTS_S, help="seconds of faults in each run")
    parser.add_argument("--until-failure", action="store_true", help="end with the first run that is not clean")
    parser.add_argument("--mutant", choices=sorted(mutant.name for mutant in MUTANTS), help="with this bug")
    options = parser.parse_args()
    with nullcontext() if options.mutant is None else mutant_named(options.mutant).applied():
        sys.exit(not _run_all(options))


def _run_all(options: Namespace) -> bool:
    """Return whether all runs were clean."""
    total: Counter[str] = Counter()
    is_clean = True
    run_count = 0
    for seed in range(options.first, options.first + options.seeds):
        run = run_quorum(
            seed,
            voter_count=options.voters,
            is_hostile=not options.streams,
            has_controllers=options.controllers,
            keeps_trace=options.trace,
            faults_s=options.faults_s,
        )
        run_count += 1
        for line in run.trace:
            sys.stdout.write(line + "\n")
        total.update(run.counts)
        total.update(acknowledged=run.acknowledged_count, barriers=run.barrier_count, terms=run.term_count)
        if run.violations or not run.is_live:
            is_clean = False
            sys.stdout.write(f"seed {seed}: {'; '.join(run.violations) or 'not live after healing'}\n")
            flags = [f"--voters {options.voters} --faults-s {options.faults_s:g}"]
            flags += [f"--{name}" for name in _FLAGS if getattr(options, name)]
            flags += [] if options.mutant is None else [f"--mutant {options.mutant}"]
            sys.stdout.write(f"replay: python -m {_MODULE} --first {seed} --seeds 1 {' '.join(flags)} --trace\n")
            if options.until_failure:
                break
    counts = ", ".join(f"{count} {what}" for what, count in total.items())
    sys.stdout.write(f"{run_count} runs of {options.voters} voters: {counts}\n")
    return is_clean


if __name__ == "__main__":
    main()
