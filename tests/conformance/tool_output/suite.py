"""What Apache Kafka's tools print, line by line: transcripts recorded on three nodes of Apache Kafka.

Every command line is run again; exit status, standard output and standard error must be the recorded ones, but for what
`known_differences.toml` explains. With `--apache-kafka --record-baseline` the transcripts are written anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from penstock.client.clock import monotonic_s, wait_until
from penstock.local.apache_kafka.jars import JarsUnavailableError, install

from ..suite import Node, Result, Run, Status, SuiteUnavailableError
from .differences import Comparison, Difference, compare, read_differences
from .normal_form import Names, names_of_nodes
from .tool_shell import ToolShell, ToolShellError
from .transcript import Step, Transcript, answer_lines, files_of

FOLDER: Final = Path(__file__).parent / "transcripts"
NODE_COUNT: Final = 3
# All that either broker is started with: the tools print where a value comes from.
PROPERTIES: Final = {
    "default.replication.factor": "1",
    "auto.create.topics.enable": "false",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}
# Brokers hear of a change after it was answered.
HEARD_TIMEOUT_S: Final = 10.0
HEARD_INTERVAL_S: Final = 0.1
SETTLED_S: Final = 1.5
SETTLING_TIMEOUT_S: Final = 30.0
_BOOTSTRAP_OPTIONS: Final = ("--bootstrap-server", "--bootstrap-controller")
# Tools that take it in front of their job only; kafka-cluster takes it behind its job only.
_BOOTSTRAP_FIRST: Final = frozenset({"features", "transactions"})


class ToolOutputSuite:
    """Test names are those of the transcripts."""

    name = "java-tools-output"

    def run(self, run: Run) -> Iterator[Result]:
        try:
            jars = install()
        except JarsUnavailableError as missing:
            raise SuiteUnavailableError(str(missing)) from missing
        # Differences are Penstock's.
        known = () if run.on_apache_kafka else read_differences()
        with ToolShell(jars, run.work) as shell, run.cluster(NODE_COUNT, PROPERTIES) as nodes:
            player = Player(shell=shell, names=Names(_known(nodes)), bootstrap=nodes[0].bootstrap, work=run.work)
            for file in sorted(FOLDER.glob("*.txt")):
                if run.wants(file.stem):
                    yield _play(player, file, known, records=run.records_baseline)


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """Runs command lines through the first node unless they name another listener."""

    shell: ToolShell
    names: Names
    bootstrap: str
    work: Path

    def answer(self, step: Step) -> tuple[str, ...]:
        """What the step's tool answers now, in normal form. Raises ToolShellError."""
        for name, text in files_of(step).items():
            (self.work / name).write_text(self.names.resolve(text))
        arguments = [self.names.resolve(word) for word in step.command.arguments]
        if not any(option in arguments for option in _BOOTSTRAP_OPTIONS):
            bootstrap = ["--bootstrap-server", self.bootstrap]
            is_first = step.command.tool in _BOOTSTRAP_FIRST
            arguments = [*bootstrap, *arguments] if is_first else [*arguments, *bootstrap]
        output = self.shell.run(step.command, arguments)
        stdout, stderr = self.names.normalise(output.stdout), self.names.normalise(output.stderr)
        return answer_lines(stdout, stderr, output.exit_status)

    def settled_answer(self, step: Step) -> tuple[str, ...]:
        """The same; of what only reads, the first answer that stays for `SETTLED_S`. Raises ToolShellError."""
        answer, since_s = self.answer(step), monotonic_s()
        deadline_s = since_s + SETTLING_TIMEOUT_S
        while step.command.is_reading and monotonic_s() - since_s < SETTLED_S:
            if monotonic_s() > deadline_s:
                raise ToolShellError(f"another answer each time, which needs a normal form: {step.command.text}")
            again = self.answer(step)
            if again != answer:
                answer, since_s = again, monotonic_s()
        return answer


def _play(player: Player, file: Path, known: Sequence[Difference], *, records: bool) -> Result:
    started_s = monotonic_s()
    transcript = Transcript.parse(file.read_text())
    player.names.begin_transcript()
    try:
        if records:
            file.write_text(transcript.format([player.settled_answer(step) for step in transcript.steps]))
            details = []
        else:
            details = _compare(player, transcript, [one for one in known if one.transcript == file.stem])
    except ToolShellError as error:
        details = [str(error)]
    return Result(
        test=file.stem,
        status=Status.FAILED if details else Status.PASSED,
        seconds=monotonic_s() - started_s,
        detail="\n".join(details),
    )


def _compare(player: Player, transcript: Transcript, known: Sequence[Difference]) -> list[str]:
    """What differs without an explanation, step by step, and which differences there are none of any more."""
    details: list[str] = []
    unused = list(known)
    for step in transcript.steps:
        comparison = _compare_step(player, step, known)
        unused = [difference for difference in unused if difference not in comparison.explained_by]
        if comparison.unexplained:
            details += (f"$ {step.command.text}", *comparison.unexplained, "")
    details += (f"a known difference that is gone: {difference.why}" for difference in unused)
    return details


def _compare_step(player: Player, step: Step, known: Sequence[Difference]) -> Comparison:
    comparison = Comparison()

    def is_expected() -> bool:
        nonlocal comparison
        comparison = compare(step.command.text, step.answer, player.answer(step), known)
        return not comparison.unexplained

    if not is_expected() and step.command.is_reading:
        wait_until(is_expected, timeout_s=HEARD_TIMEOUT_S, interval_s=HEARD_INTERVAL_S)
    return comparison


def _known(nodes: Sequence[Node]) -> dict[str, str]:
    return names_of_nodes((node.id, node.bootstrap, node.controller, str(node.process.data)) for node in nodes)
