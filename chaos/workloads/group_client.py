"""A member of a group that commits by itself (`enable.auto.commit`), and now and then by hand; a client program.

`subscribe`, `poll`, `commit` {key: offset}, `crash`: at least once, for what was polled is what is committed. In the
end the members go on polling, as final polls, until the group has committed all that there is.
"""

from __future__ import annotations

from typing import Any, Final

import click

from ...client import clock
from .client_program import Client, ProgramOptions, program_options, run_client
from .final_reads import CATCH_UP_S, find_committed, find_ends
from .queue_client import values_of
from .session import Polled, SessionOptions

_POLL_S: Final = 0.1
_COMMIT_RATIO: Final = 0.05
_CRASH_RATIO: Final = 0.01


class GroupClient(Client):
    _positions: dict[str, int]

    @property
    def _group(self) -> str:
        return f"{self.options.topic}-group"

    def session_options(self) -> SessionOptions:
        return SessionOptions(
            bootstrap=self.options.bootstrap,
            client_id=f"{self.options.topic}-{self.options.process}",
            group=self._group,
            has_producer=False,
            has_auto_commit=True,
        )

    def began(self) -> None:
        self._positions = {}
        topics = [self.options.topic]
        self.perform("subscribe", topics, lambda: self.session.subscribe(topics))

    def step(self) -> None:
        if self.random.random() < _CRASH_RATIO:
            self.crash()
        elif self._positions and self.random.random() < _COMMIT_RATIO:
            positions = self._positions
            self._positions = {}
            self.perform("commit", positions, lambda: self.session.commit_offsets(positions))
        else:
            self._poll()

    def final(self) -> bool:
        keys = self.options.keys
        deadline_s = clock.monotonic_s() + CATCH_UP_S
        self.close()
        ends = find_ends(self.options.bootstrap, keys, deadline_s=deadline_s)
        while ends is not None and clock.monotonic_s() < deadline_s:
            if not self.has_session:
                self.enter(is_wanted=lambda: clock.monotonic_s() < deadline_s)
                continue
            self._poll(final=True)
            committed = find_committed(self.options.bootstrap, self._group, keys)
            if committed is not None and all(committed[key] >= end for key, end in ends.items()):
                return True
        return False

    def _poll(self, *, final: bool = False) -> None:
        polled: Polled = {}

        def poll() -> list[Any]:
            nonlocal polled
            polled = self.session.poll(_POLL_S)
            return [["poll", values_of(polled)]]

        self.perform("poll", [["poll"]], poll, final=final)
        # Of the last poll only: partitions that are no longer its own are not in it.
        if polled:
            self._positions = {key: records[-1].offset + 1 for key, records in polled.items()}


@click.command()
@program_options
def main(**given: Any) -> None:
    """Poll as a member of a group."""
    run_client(ProgramOptions(**given), GroupClient)


if __name__ == "__main__":
    main()
