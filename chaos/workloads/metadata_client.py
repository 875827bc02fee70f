"""Topics, their partitions and a configuration, made, changed, deleted and looked at by all clients; a client program.

Each topic name is one object, and all that is done to it should seem to be done at one moment between request and
answer. `create-topic` {name, partitions, configs}, `delete-topic` {name}, `create-partitions` {name, total},
`set-config` {name, key, value}, `describe-topic` {name} → {name, partitions}, null without the topic, `get-config`
{name, key} → {name, key, value}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from ...client import clock
from ..histories.client_history import ClientHistory
from .admin_session import AdminSession
from .client_program import Client, Instructions, ProgramOptions, program_options, run_client
from .final_reads import CATCH_UP_S
from .session import SessionOptions

# Few, so that clients meet; with some partitions, for each of which nodes have work to do.
_TOPICS: Final = 4
_MAX_PARTITIONS: Final = 6
_CONFIG: Final = "retention.ms"
# Beyond what a broker has by default, and never so short that something is deleted.
_FIRST_VALUE: Final = 1_000_000_000
_CRASH_RATIO: Final = 0.01
_PAUSE_S: Final = 0.2


class MetadataClient(Client):
    def __init__(self, options: ProgramOptions, history: ClientHistory, instructions: Instructions) -> None:
        super().__init__(options, history, instructions)
        self._names = [f"{options.topic}-m{number}" for number in range(_TOPICS)]

    @property
    def admin(self) -> AdminSession:
        life = self.life
        assert isinstance(life, AdminSession), "it opens no other"
        return life

    def session_options(self) -> SessionOptions:
        return SessionOptions(
            bootstrap=self.options.bootstrap, client_id=f"{self.options.topic}-{self.options.process}"
        )

    def new_life(self, options: SessionOptions) -> AdminSession:
        return AdminSession(options.bootstrap, client_id=options.client_id, random=self.random)

    def began(self) -> None:
        """Nothing is to be said of what it asks."""

    def step(self) -> None:
        if self.random.random() < _CRASH_RATIO:
            self.crash()
            return
        name = self.random.choice(self._names)
        # Topics are there more often than not.
        weights = {self._create: 3, self._delete: 1, self._grow: 1, self._set: 2, self._describe: 3, self._get: 2}
        operations: list[Callable[[str], object]] = list(weights)
        self.random.choices(operations, list(weights.values()))[0](name)

    def final(self) -> bool:
        deadline_s = clock.monotonic_s() + CATCH_UP_S
        self.close()
        # A broker shows what it has replayed: what it is asked first may be behind what was acknowledged last.
        left = [(name, final) for final in (False, True) for name in self._names]
        while left and clock.monotonic_s() < deadline_s:
            if not self.has_session:
                self.open(self.session_options(), is_wanted=lambda: clock.monotonic_s() < deadline_s)
                continue
            name, final = left[0]
            described = self._describe(name, final=final)
            if described is None:
                clock.pause(_PAUSE_S)
                continue
            if described["partitions"] is not None and self.has_session:
                self._get(name, final=final)
            del left[0]
        return not left

    def _create(self, name: str) -> None:
        partitions, configs = self.random.randint(1, _MAX_PARTITIONS // 2), {_CONFIG: self._draw_config()}
        value = {"name": name, "partitions": partitions, "configs": configs}
        self.perform("create-topic", value, lambda: self.admin.create_topic(name, partitions, configs))

    def _delete(self, name: str) -> None:
        self.perform("delete-topic", {"name": name}, lambda: self.admin.delete_topic(name))

    def _grow(self, name: str) -> None:
        total = self.random.randint(2, _MAX_PARTITIONS)
        value = {"name": name, "total": total}
        self.perform("create-partitions", value, lambda: self.admin.create_partitions(name, total))

    def _set(self, name: str) -> None:
        config = self._draw_config()
        value = {"name": name, "key": _CONFIG, "value": config}
        self.perform("set-config", value, lambda: self.admin.set_config(name, _CONFIG, config))

    def _describe(self, name: str, *, final: bool = False) -> Any:
        return self.perform(
            "describe-topic",
            {"name": name},
            lambda: {"name": name, "partitions": self.admin.partitions(name)},
            final=final,
        )

    def _get(self, name: str, *, final: bool = False) -> Any:
        asked = {"name": name, "key": _CONFIG}
        return self.perform(
            "get-config", asked, lambda: {**asked, "value": self.admin.config(name, _CONFIG)}, final=final
        )

    def _draw_config(self) -> str:
        return str(_FIRST_VALUE + self.draw_value())


@click.command()
@program_options
def main(**given: Any) -> None:
    """Make topics, change them, look at them."""
    run_client(ProgramOptions(**given), MetadataClient)


if __name__ == "__main__":
    main()
