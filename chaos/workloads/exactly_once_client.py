"""Consume-transform-produce, exactly once: a client program that copies or reads, by `--role`.

The queue's clients send numbers to the input, `TOPIC-N`; copiers, members of one group, write [input key, input value]
for each record to the output, `TOPIC-out-N`, in transactions with the offsets that they have read up to (KIP-98,
KIP-447), and give some of them up; a reader polls the output. Copiers stop when the group has committed all of the
input, and fail where it has not. In the end the output is read whole, as the input is by those who sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import click

from ...client import clock
from .client_program import Client, ProgramOptions, program_options, run_client
from .final_reads import find_committed, find_ends, read_to_ends
from .outcomes import NotDoneError, UnknownOutcomeError
from .session import Polled, Send, SessionOptions, key_of, place_of

OUTPUT_SUFFIX: Final = "-out"
_ABORT_RATIO: Final = 0.1
_CRASH_RATIO: Final = 0.005
_POLL_S: Final = 0.1
# Below what stopping a client may take.
_FINISH_S: Final = 30.0
_PAUSE_S: Final = 0.1


class Reader(Client):
    """Polls the output keys."""

    @property
    def _keys(self) -> list[str]:
        topic = self.options.topic + OUTPUT_SUFFIX
        return [key_of(topic, number) for number in range(self.options.partitions)]

    def session_options(self) -> SessionOptions:
        return SessionOptions(
            bootstrap=self.options.bootstrap, client_id=f"{self.options.topic}-reader", has_producer=False
        )

    def began(self) -> None:
        self.perform("assign", self._keys, lambda: self.session.assign(self._keys, from_beginning=True))

    def step(self) -> None:
        if self.random.random() < _CRASH_RATIO:
            self.crash()
        else:
            self.perform("poll", [["poll"]], lambda: _outputs(self.session.poll(_POLL_S)))

    def final(self) -> bool:
        return read_to_ends(self, self._keys, self.session_options(), asked=[["poll"]], shape=_outputs)


class Copier(Client):
    """Its transactions are operations `copy`: {input key: [first offset, next offset]}."""

    @property
    def _group(self) -> str:
        return f"{self.options.topic}-copiers"

    def session_options(self) -> SessionOptions:
        name = f"{self.options.topic}-{self.options.process}"
        return SessionOptions(
            bootstrap=self.options.bootstrap, client_id=name, transactional_id=name, group=self._group
        )

    def began(self) -> None:
        self.session.subscribe([self.options.topic])

    def step(self) -> None:
        try:
            polled = self.session.poll(_POLL_S)
        except NotDoneError as error:
            if error.is_broken:
                self.close()
            return
        if polled and self.random.random() < _CRASH_RATIO:
            # With records that it was given: its successor has to be given them again.
            self.crash()
        elif polled:
            value = {key: [records[0].offset, records[-1].offset + 1] for key, records in polled.items()}
            self.perform("copy", value, lambda: self._copy(polled))

    def finish(self) -> None:
        deadline_s = clock.monotonic_s() + _FINISH_S
        ends = find_ends(self.options.bootstrap, self.options.keys, deadline_s=deadline_s)
        while ends is not None and clock.monotonic_s() < deadline_s:
            if self._has_committed(ends):
                return
            if self.has_session:
                self.step()
            else:
                self.enter(is_wanted=lambda: clock.monotonic_s() < deadline_s)
            clock.pause(_PAUSE_S)

    def final(self) -> bool:
        """Whether the group has committed all of the input: what it did not come to has no output, and is not lost."""
        deadline_s = clock.monotonic_s() + _FINISH_S
        ends = find_ends(self.options.bootstrap, self.options.keys, deadline_s=deadline_s)
        is_done = ends is not None and clock.wait_until(
            lambda: self._has_committed(ends), timeout_s=deadline_s - clock.monotonic_s(), interval_s=_PAUSE_S
        )
        self.perform("committed", self.options.keys, self._committed, final=True)
        return is_done

    def _committed(self) -> dict[str, int]:
        """Raises NotDoneError."""
        committed = find_committed(self.options.bootstrap, self._group, self.options.keys)
        if committed is None:
            raise NotDoneError("no coordinator told what the group has committed")
        return committed

    def _has_committed(self, ends: Mapping[str, int]) -> bool:
        committed = find_committed(self.options.bootstrap, self._group, list(ends))
        return committed is not None and all(committed[key] >= end for key, end in ends.items())

    def _copy(self, polled: Polled) -> None:
        self.session.begin()
        try:
            sends = [
                Send(_output_of(key), json.dumps([key, int(record.value or 0)]).encode())
                for key, records in polled.items()
                for record in records
            ]
            self.session.send(sends)
            self.session.send_offsets({key: records[-1].offset + 1 for key, records in polled.items()})
            if self.random.random() < _ABORT_RATIO:
                raise NotDoneError("aborted by the client")
        except (NotDoneError, UnknownOutcomeError) as error:
            # Nothing has asked for it to be committed: whatever the abort comes to, it has no effect.
            if isinstance(error, NotDoneError) and error.is_broken:
                raise
            self.session.abort()
            self.session.seek({key: records[0].offset for key, records in polled.items()})
            raise NotDoneError(str(error)) from error
        self.session.commit()


def _output_of(key: str) -> str:
    topic, partition = place_of(key)
    return key_of(topic + OUTPUT_SUFFIX, partition)


def _outputs(polled: Polled) -> list[Any]:
    """The value of a poll of the output."""
    values = {
        key: [[one.offset, json.loads(one.value or b"null")] for one in records] for key, records in polled.items()
    }
    return [["poll", values]]


@click.command()
@program_options
@click.option("--role", type=click.Choice(["copy", "read"]), required=True)
def main(role: str, **given: Any) -> None:
    """Copy or read."""
    run_client(ProgramOptions(**given), Copier if role == "copy" else Reader)


if __name__ == "__main__":
    main()
