"""librdkafka's sources, fetched with cargo and built with its tests once into the cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

from penstock.client.cached_programs import cache_folder

from ..programs import run_program, tail
from ..suite import SuiteUnavailableError

FOLDER: Final = Path(__file__).parent
# What Debian calls the packages that bring the programs.
TOOLS: Final = {"cargo": "cargo (or cargo-web)", "gcc": "gcc", "g++": "g++", "make": "make"}
# Without those of RapidJSON the build goes through and leaves out three tests.
HEADERS: Final = {"openssl/ssl.h": "libssl-dev", "zlib.h": "zlib1g-dev", "rapidjson/document.h": "rapidjson-dev"}
FETCH_TIMEOUT_S: Final = 300.0
BUILD_TIMEOUT_S: Final = 1800.0


def built_sources() -> Path:
    """The folder of librdkafka with `tests/test-runner` in it. Raises SuiteUnavailableError."""
    stamp = hashlib.sha256((FOLDER / "Cargo.toml").read_bytes()).hexdigest()[:16]
    folder = cache_folder() / f"librdkafka-{stamp}"
    if folder.is_dir():
        return folder
    missing = [package for program, package in TOOLS.items() if shutil.which(program) is None]
    if missing:
        raise SuiteUnavailableError(
            f"librdkafka's tests are built with programs of {', '.join(missing)}: apt-get install"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="librdkafka-") as work:
        source = _fetch(Path(work))
        _build(source, Path(work))
        # Renamed when whole: no reader finds half of it.
        source.rename(folder)
    return folder


def _fetch(work: Path) -> Path:
    shutil.copy(FOLDER / "Cargo.toml", work)
    (work / "src").mkdir()
    (work / "src" / "lib.rs").touch()
    log = work / "fetch.log"
    command = ["cargo", "vendor", "--quiet", "vendor"]
    if run_program(command, log=log, timeout_s=FETCH_TIMEOUT_S, folder=work) != 0:
        raise SuiteUnavailableError(f"cargo could not fetch librdkafka's sources: {tail(log, 600)}")
    source = work / "vendor" / "rdkafka-sys" / "librdkafka"
    # A crate does not keep who may be executed.
    for file in source.rglob("*"):
        if file.is_file() and file.read_bytes().startswith(b"#!"):
            file.chmod(0o755)
    return source


def _build(source: Path, work: Path) -> None:
    log = work / "build.log"
    probe = work / "headers.cpp"
    for header, package in HEADERS.items():
        probe.write_text(f"#include <{header}>\n")
        if run_program(["g++", "-fsyntax-only", probe], log=log, timeout_s=BUILD_TIMEOUT_S) != 0:
            raise SuiteUnavailableError(f"librdkafka's tests are built with {header}: apt-get install {package}")
    jobs = f"-j{os.cpu_count() or 1}"
    for command in (["./configure"], ["make", jobs, "libs"], ["make", jobs, "-C", "tests", "build"]):
        if run_program(command, log=log, timeout_s=BUILD_TIMEOUT_S, folder=source) != 0:
            raise SuiteUnavailableError(f"librdkafka could not be built: {tail(log)}")
