"""The queue: sends numbers to partitions and polls them back, as `jepsen.tests.kafka` does; a client program.

Each client has a producer and a consumer, which is assigned some of the partitions, or a member of a group
(`--subscribe`). Now and then it crashes and begins anew. With `--transactions` sends and polls are micro-operations of
transactions; what was polled is committed with them where clients are members. With `--key-each` each client writes to
one partition only and all others leave it alone; with `--only-sends` it polls in the end only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

from ..histories.client_history import ClientHistory
from .client_program import Client, Instructions, ProgramOptions, program_options, run_client
from .final_reads import read_to_ends
from .outcomes import NotDoneError, UnknownOutcomeError
from .session import Polled, Send, SessionOptions

_POLL_S: Final = 0.1
_MAX_MICRO_OPERATIONS: Final = 4
_CRASH_RATIO: Final = 0.005
_SEND_RATIO: Final = 0.6
_BEGINNING_RATIO: Final = 0.3
# Of transactions that the client gives up by itself.
_ABORT_RATIO: Final = 0.1


class QueueClient(Client):
    def __init__(
        self,
        options: ProgramOptions,
        history: ClientHistory,
        instructions: Instructions,
        *,
        subscribes: bool = False,
        is_transactional: bool = False,
        has_own_key: bool = False,
        is_idempotent: bool = True,
        only_sends: bool = False,
    ) -> None:
        super().__init__(options, history, instructions)
        self._subscribes = subscribes
        self._is_transactional = is_transactional
        self._is_idempotent = is_idempotent
        self._only_sends = only_sends
        keys = options.keys
        self._written = [keys[options.process % len(keys)]] if has_own_key else keys

    def session_options(self) -> SessionOptions:
        name = f"{self.options.topic}-{self.options.process}"
        return SessionOptions(
            bootstrap=self.options.bootstrap,
            client_id=name,
            group=f"{self.options.topic}-group" if self._subscribes or self._is_transactional else None,
            transactional_id=name if self._is_transactional else None,
            is_idempotent=self._is_idempotent,
            has_auto_commit=self._subscribes and not self._is_transactional,
        )

    def began(self) -> None:
        if self._only_sends:
            return
        if self._subscribes:
            topics = [self.options.topic]
            self.perform("subscribe", topics, lambda: self.session.subscribe(topics))
            return
        keys = self.options.keys
        chosen = sorted(self.random.sample(keys, self.random.randint((len(keys) + 1) // 2, len(keys))))
        from_beginning = self.random.random() < _BEGINNING_RATIO
        self.perform("assign", chosen, lambda: self.session.assign(chosen, from_beginning=from_beginning))

    def step(self) -> None:
        if self.random.random() < _CRASH_RATIO:
            self.crash()
        elif self._is_transactional:
            count = self.random.randint(1, _MAX_MICRO_OPERATIONS)
            asked = [self._draw_send() if self.random.random() < _SEND_RATIO else ["poll"] for _ in range(count)]
            self.perform("txn", asked, lambda: self._transact(asked))
        elif self._only_sends or self.random.random() < _SEND_RATIO:
            sends = [self._draw_send() for _ in range(self.random.randint(1, _MAX_MICRO_OPERATIONS))]
            self.perform("send", sends, lambda: self._send(sends))
        else:
            self.perform("poll", [["poll"]], lambda: [["poll", values_of(self.session.poll(_POLL_S))]])

    def final(self) -> bool:
        options = SessionOptions(
            bootstrap=self.options.bootstrap, client_id=f"{self.options.topic}-final", has_producer=False
        )
        return read_to_ends(
            self, self.options.keys, options, asked=[["poll"]], shape=lambda polled: [["poll", values_of(polled)]]
        )

    def _draw_send(self) -> list[Any]:
        return ["send", self.random.choice(self._written), self.draw_value()]

    def _send(self, sends: list[list[Any]]) -> list[list[Any]]:
        try:
            offsets = self.session.send([Send(key, str(value).encode()) for _, key, value in sends])
        except UnknownOutcomeError as error:
            raise UnknownOutcomeError(str(error), _told(sends, error.value)) from error
        return [["send", key, [offset, value]] for (_, key, value), offset in zip(sends, offsets, strict=True)]

    def _transact(self, asked: list[list[Any]]) -> list[list[Any]]:
        done: list[list[Any]] = []
        firsts: dict[str, int] = {}
        nexts: dict[str, int] = {}
        self.session.begin()
        try:
            for operation in asked:
                if operation[0] == "send":
                    done += self._send([operation])
                    continue
                polled = self.session.poll(_POLL_S)
                done.append(["poll", values_of(polled)])
                for key, records in polled.items():
                    firsts.setdefault(key, records[0].offset)
                    nexts[key] = records[-1].offset + 1
            if self._subscribes and nexts:
                self.session.send_offsets(nexts)
            if self.random.random() < _ABORT_RATIO:
                raise NotDoneError("aborted by the client")
        except (NotDoneError, UnknownOutcomeError) as error:
            # Nothing has asked for it to be committed: whatever the abort comes to, it has no effect.
            self._give_up(error, firsts)
        try:
            self.session.commit()
        except UnknownOutcomeError as error:
            raise UnknownOutcomeError(str(error), done) from error
        return done

    def _give_up(self, reason: Exception, firsts: Mapping[str, int]) -> None:
        """Raises NotDoneError."""
        if getattr(reason, "is_broken", False):
            raise reason
        self.session.abort()
        self.session.seek(firsts)
        raise NotDoneError(str(reason)) from reason


def values_of(polled: Polled) -> dict[str, list[list[Any]]]:
    """As histories have them, by key."""
    return {
        key: [[one.offset, None if one.value is None else int(one.value)] for one in records]
        for key, records in polled.items()
    }


def _told(sends: list[list[Any]], offsets: list[int | None] | None) -> list[list[Any]] | None:
    """What is known of sends of which not all have an outcome."""
    if offsets is None:
        return None
    return [
        ["send", key, value if offset is None else [offset, value]]
        for (_, key, value), offset in zip(sends, offsets, strict=True)
    ]


@click.command()
@program_options
@click.option("--subscribe", is_flag=True)
@click.option("--transactions", is_flag=True)
@click.option("--key-each", is_flag=True)
@click.option("--no-idempotence", is_flag=True)
@click.option("--only-sends", is_flag=True)
def main(
    subscribe: bool, transactions: bool, key_each: bool, no_idempotence: bool, only_sends: bool, **given: Any
) -> None:
    """Send numbers, poll them back."""
    run_client(
        ProgramOptions(**given),
        lambda options, history, instructions: QueueClient(
            options, history, instructions, subscribes=subscribe, is_transactional=transactions, has_own_key=key_each,
            is_idempotent=not no_idempotence, only_sends=only_sends,
        ),
    )  # fmt: skip


if __name__ == "__main__":
    main()
