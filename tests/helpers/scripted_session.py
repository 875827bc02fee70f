"""A session of a workload's client that answers what a test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.chaos.workloads.session import Polled, Received, Send


class ScriptedSession:
    """Raises what is told for a kind of call here; polls what is told for `poll`."""

    def __init__(self, answers: Mapping[str, object], *polled: Polled) -> None:
        self.answers = answers
        self.calls: list[str] = []
        self.ends: dict[str, int] = {}
        self._polled = list(polled)
        self._reached: dict[str, int] = {}

    def send(self, sends: Sequence[Send]) -> list[int]:
        self._answer("send")
        return list(range(len(sends)))

    def poll(self, timeout_s: float) -> Polled:
        self._answer(f"poll {timeout_s}")
        polled = self._polled.pop(0) if self._polled else {}
        for key, records in polled.items():
            self._reached[key] = records[-1].offset + 1
        return polled

    def assign(self, keys: Sequence[str], *, from_beginning: bool) -> None:
        self._answer(f"assign {keys} {from_beginning}")

    def subscribe(self, topics: Sequence[str]) -> None:
        self._answer(f"subscribe {topics}")

    def seek(self, positions: Mapping[str, int]) -> None:
        self._answer(f"seek {dict(positions)}")

    def commit_offsets(self, positions: Mapping[str, int]) -> None:
        self._answer(f"commit_offsets {positions}")

    def begin(self) -> None:
        self._answer("begin")

    def send_offsets(self, positions: Mapping[str, int]) -> None:
        self._answer(f"send_offsets {positions}")

    def commit(self) -> None:
        self._answer("commit")

    def abort(self) -> None:
        self._answer("abort")

    def reached(self, key: str) -> int:
        return self._reached.get(key, 0)

    def end(self, key: str) -> int:
        return self.ends.get(key, 0)

    def rest(self, seconds: float) -> None:
        self._answer(f"rest {seconds}")

    def close(self) -> None:
        self.calls.append("close")

    def _answer(self, call: str) -> None:
        """`call` is its name, with what it was asked behind it."""
        self.calls.append(call)
        answer = self.answers.get(call.split()[0])
        if isinstance(answer, Exception):
            raise answer


def records(*values: tuple[int, str]) -> list[Received]:
    """By offset."""
    return [Received(offset, value.encode()) for offset, value in values]
