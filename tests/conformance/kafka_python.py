"""kafka-python's integration tests: producer, consumer, groups and admin client of a pure Python client.

They are written for a single broker: some look at the first one for what another may have, or count what one fetch
brings. They are in the source archive of the package, of the version that this project's own tests use; it is fetched
once with pip. They run in this project's environment, which has what they import.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
import xml.etree.ElementTree
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

from penstock.client.cached_programs import cache_folder

from .programs import run_program, tail
from .server_properties import PROPERTIES
from .suite import Result, Run, Status, SuiteUnavailableError

# What the suite is told of the broker's version, so that it leaves out tests of things that newer brokers do not do.
KAFKA_VERSION = "4.3.1"
TESTS = "test/integration"
# They start brokers of their own, with TLS and SASL.
LEFT_OUT = ("test_sasl_integration.py", "test_ssl_integration.py")
DOWNLOAD_TIMEOUT_S = 300.0
COLLECT_TIMEOUT_S = 60.0
TEST_TIMEOUT_S = 120.0
RUN_TIMEOUT_S = 1800.0
# The archive leaves out this module of the suite; of it, only a broker that another program started is used here.
SERVICE = """
class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass

    stop = close


class SpawnedService:
    pass
"""


class KafkaPythonSuite:
    """Test names are `module.function[parameters]`."""

    name = "kafka-python"

    def run(self, run: Run) -> Iterator[Result]:
        source = _source()
        wanted = [test for test in _collect(source, run.work / "collect.log") if run.wants(_name(test))]
        not_yet = [test for test in wanted if _name(test) in run.expectations.not_yet]
        limit_s = max((run.expectations.limit_s(_name(test), TEST_TIMEOUT_S) for test in not_yet), default=0.0)
        with run.broker(PROPERTIES) as bootstrap:
            others = [test for test in wanted if test not in not_yet]
            yield from _run(source, others, bootstrap, run.work, "tests", TEST_TIMEOUT_S)
            yield from _run(source, not_yet, bootstrap, run.work, "not-yet", limit_s)


def _source() -> Path:
    """The unpacked archive, in the cache."""
    release = version("kafka-python")
    folder = cache_folder() / f"kafka-python-{release}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="kafka-python-") as work:
        log = Path(work, "pip.log")
        status = run_program(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"),
                *("--dest", work, f"kafka-python=={release}"),
            ],
            log=log,
            timeout_s=DOWNLOAD_TIMEOUT_S,
        )
        if status != 0:
            raise SuiteUnavailableError(f"pip could not fetch kafka-python's source archive: {tail(log, 600)}")
        (archive,) = Path(work).glob("kafka_python-*.tar.gz")
        with tarfile.open(archive) as opened:
            opened.extractall(work, filter="data")
        unpacked = Path(work, archive.name.removesuffix(".tar.gz"))
        # The archive leaves these out, and Python has a package `test` of its own.
        (unpacked / "test" / "__init__.py").touch()
        (unpacked / "test" / "service.py").write_text(SERVICE)
        unpacked.rename(folder)
    return folder


def _collect(source: Path, log: Path) -> list[str]:
    """Pytest's names of all tests: `file::function[parameters]`."""
    ignored = [f"--ignore={TESTS}/{file}" for file in LEFT_OUT]
    status = run_program(
        [*_pytest(), "--collect-only", "-q", *ignored, TESTS],
        log=log,
        timeout_s=COLLECT_TIMEOUT_S,
        folder=source,
        environment=_environment(source, log.parent, "localhost:1"),
    )
    if status != 0:
        raise SuiteUnavailableError(f"kafka-python's tests could not be collected: {tail(log)}")
    return [line for line in log.read_text().splitlines() if line.startswith(TESTS)]


def _run(source: Path, tests: Sequence[str], bootstrap: str, work: Path, what: str, limit_s: float) -> Iterator[Result]:
    if not tests:
        return
    report, log = work / f"{what}.xml", work / f"{what}.log"
    run_program(
        # Upstream's own choice, a thread, ends the whole run with the first test that takes too long.
        [*_pytest(), f"--timeout={limit_s:.0f}", "--timeout-method=signal", f"--junitxml={report}", *tests],
        log=log,
        timeout_s=RUN_TIMEOUT_S,
        folder=source,
        environment=_environment(source, work, bootstrap),
    )
    if not report.exists():
        raise SuiteUnavailableError(f"kafka-python's tests did not end: {tail(log)}")
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        yield _result(case)


def _result(case: xml.etree.ElementTree.Element) -> Result:
    status, detail = Status.PASSED, ""
    for child in case:
        if child.tag in ("failure", "error"):
            status, detail = Status.FAILED, f"{child.get('message')}\n{child.text}"
        elif child.tag == "skipped" and status is Status.PASSED:
            status, detail = Status.SKIPPED, str(child.get("message"))
    module = str(case.get("classname")).removeprefix(TESTS.replace("/", ".") + ".")
    return Result(test=f"{module}.{case.get('name')}", status=status, seconds=float(case.get("time", 0)), detail=detail)


def _name(test: str) -> str:
    return test.removeprefix(f"{TESTS}/").replace(".py::", ".")


def _pytest() -> list[str]:
    # Its tests are told apart from this project's: no random order, no cache in the unpacked archive.
    return [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider"]


def _environment(source: Path, work: Path, bootstrap: str) -> dict[str, str]:
    return {
        "KAFKA_VERSION": KAFKA_VERSION,
        "KAFKA_URI": f"kafka://{bootstrap.split(',')[0]}",
        "ZOOKEEPER_URI": "none://none:1",
        "KAFKA_ROOT": str(work),
        "PYTHONPATH": str(source),
        # Options for this project's pytest are not for theirs.
        "PYTEST_ADDOPTS": "",
    }
