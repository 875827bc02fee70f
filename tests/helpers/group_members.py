"""Consumers of a group in processes of their own, which can be killed and paused: `penstock consume --group`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from penstock.client.clock import wait_until

DEADLINE_S = 60.0
Place = tuple[int, int]
"""Partition and offset."""


class MemberProcess:
    """One member. What it has printed are the records that it has read, and most of them it has committed."""

    def __init__(self, bootstrap: str, topic: str, group: str, *properties: str) -> None:
        command = [sys.executable, "-P", "-m", "penstock", "consume", topic, "--group", group, "--follow", "--json"]
        command += [option for one in ("session.timeout.ms=6000", *properties) for option in ("-X", one)]
        self._process = subprocess.Popen(
            [*command, "--bootstrap", bootstrap], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.read: list[Place] = []
        self._threads = ThreadPoolExecutor(1)
        self._reading = self._threads.submit(self._read)

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                record = json.loads(line)
                self.read.append((record["partition"], record["offset"]))

    def kill(self) -> None:
        self._process.kill()
        self._end()

    def leave(self) -> None:
        """As Ctrl-C."""
        self._process.send_signal(signal.SIGINT)
        assert self._end() == 0

    def _end(self) -> int:
        status = self._process.wait(DEADLINE_S)
        self._reading.result(DEADLINE_S)
        self._threads.shutdown()
        return status

    def pause(self) -> None:
        os.kill(self._process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)

    def wait_read(self, count: int) -> None:
        """So many in all."""
        assert wait_until(lambda: len(self.read) >= count, timeout_s=DEADLINE_S, interval_s=0.05), len(self.read)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process.poll() is None:
            self.resume()
            self.kill()
