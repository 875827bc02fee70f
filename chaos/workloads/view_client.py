"""A client that writes records and asks for what the records of a partition come to, with views of all partitions."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Final

from ...client import clock
from .client_program import Client
from .final_reads import CATCH_UP_S
from .partition_view import PartitionViews
from .session import Received, Send, SessionOptions

_CRASH_RATIO: Final = 0.005
_WRITE_RATIO: Final = 0.5
_PAUSE_S: Final = 0.2


class ViewClient(Client):
    """What is written and read is said by `draw_write`, `draw_read`, `take`, `forget` and `answer`."""

    answer_field: ClassVar[str]
    """Of the value of a read."""
    _views: PartitionViews | None = None

    @abstractmethod
    def draw_write(self) -> tuple[str, Any, Send]:
        """f, value and record of a write."""

    @abstractmethod
    def subjects(self) -> list[str]:
        """What may be read, by the name that histories know."""

    @abstractmethod
    def partition_of(self, subject: str) -> str:
        """The key of the partition that has its records."""

    @abstractmethod
    def take(self, key: str, record: Received) -> None: ...

    @abstractmethod
    def forget(self, key: str) -> None: ...

    @abstractmethod
    def answer(self, subject: str) -> Any:
        """The value of a read, by what was taken."""

    def session_options(self) -> SessionOptions:
        return SessionOptions(
            bootstrap=self.options.bootstrap, client_id=f"{self.options.topic}-{self.options.process}"
        )

    def began(self) -> None:
        for key in self.options.keys:
            self.forget(key)
        self.session.assign(self.options.keys, from_beginning=True)
        self._views = PartitionViews(self.session, take=self.take, forget=self.forget)

    def step(self) -> None:
        if self.random.random() < _CRASH_RATIO:
            self.crash()
        elif self.random.random() < _WRITE_RATIO:
            f, value, send = self.draw_write()
            self.perform(f, value, lambda: self._write(send))
        else:
            self._read(self.random.choice(self.subjects()))

    def final(self) -> bool:
        deadline_s = clock.monotonic_s() + CATCH_UP_S
        self.close()
        left = self.subjects()
        while left and clock.monotonic_s() < deadline_s:
            if self.has_session:
                if self._read(left[0], final=True) is None:
                    clock.pause(_PAUSE_S)
                else:
                    del left[0]
            else:
                self.enter(is_wanted=lambda: clock.monotonic_s() < deadline_s)
        return not left

    def _write(self, send: Send) -> None:
        self.session.send([send])

    def _read(self, subject: str, *, final: bool = False) -> Any:
        """What was read; None without an answer."""
        views = self._views
        assert views is not None, "a session began"

        def read() -> Any:
            views.catch_up(self.partition_of(subject))
            return {"k": subject, self.answer_field: self.answer(subject)}

        return self.perform("read", {"k": subject}, read, final=final)
