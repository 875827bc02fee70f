"""A real S3 server beside the test: versitygw, whose buckets are folders.

`python tests/helpers/s3_server.py` builds it. It can be killed and started again on its port, as an outage of the tier.
"""

from __future__ import annotations

import http.client
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from missing_tools import unavailable
from waiting import wait_for

from penstock.chaos.links.toxiproxy_build import build_with_go
from penstock.client.cached_programs import cache_folder
from penstock.local.ports import find_free

VERSITYGW: Final = "versitygw"
VERSION: Final = "1.8.0"
MODULE: Final = f"github.com/versity/versitygw/cmd/versitygw@v{VERSION}"
BUCKET: Final = "tier"
_KEY: Final = "penstock"
_SECRET: Final = "a secret of tests"


def server_path() -> Path:
    return cache_folder() / VERSITYGW / VERSION / VERSITYGW


def find_server() -> str:
    """Skips the test, or fails it in CI, where the machine has none."""
    found = shutil.which(VERSITYGW) or (str(server_path()) if server_path().exists() else None)
    if found is None:
        unavailable(f"{VERSITYGW} is not installed (`python tests/helpers/s3_server.py` builds it)")
    return found


class S3Server:
    """One bucket; for a `with` statement."""

    def __init__(self, folder: Path) -> None:
        self.program = find_server()
        self.bucket = folder / "buckets" / BUCKET
        self.bucket.mkdir(parents=True)
        self.port = find_free(random.Random())
        self._said = folder / "s3-server.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        """What tells a node how to reach it."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            "AWS_REGION": "us-east-1",
        }

    def start(self) -> None:
        with self._said.open("ab") as said:
            self._process = subprocess.Popen(
                [self.program, "--port", f"127.0.0.1:{self.port}", "--quiet", "posix", str(self.bucket.parent)],
                env={**os.environ, "ROOT_ACCESS_KEY": _KEY, "ROOT_SECRET_KEY": _SECRET},
                stdout=said,
                stderr=said,
            )
        wait_for(self._answers, f"the S3 server answers, see {self._said}")

    def kill(self) -> None:
        assert self._process is not None, "it runs"
        self._process.kill()
        self._process.wait()
        self._process = None

    def objects(self) -> list[str]:
        """The keys of all objects."""
        # Folders may go while this looks.
        found = [Path(folder, name) for folder, _, names in os.walk(self.bucket) for name in names]
        keys = [str(path.relative_to(self.bucket)) for path in found]
        return sorted(key for key in keys if not key.startswith("."))

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._said.read_text()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status > 0
        except OSError:
            return False
        finally:
            connection.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self.kill()


if __name__ == "__main__":
    known = shutil.which(VERSITYGW) or server_path()
    built = known if Path(known).exists() else build_with_go(MODULE, VERSITYGW, server_path())
    sys.stdout.write(f"{built}\n")
