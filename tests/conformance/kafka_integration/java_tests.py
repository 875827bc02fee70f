"""The tests' jars, the shim that stands before some of their classes, and the program that runs both."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.local.apache_kafka.jars import SHORT_RUN_OPTIONS, JarsUnavailableError, KafkaJars, install
from penstock.protocol.structs import replace

from ..java_compiler import compile_java
from ..suite import Result, Status, SuiteUnavailableError

FOLDER = Path(__file__).parent
POM = FOLDER / "pom.xml"
SHIM = FOLDER / "shim"
CORE_SHIM = FOLDER / "core_shim"
KDC_SHIM = FOLDER / "kdc_shim"
TESTS_JAR = "kafka-clients-integration-tests-*-test.jar"
# What a class file that has a test of a cluster names among its constants: ClusterTest, ClusterTests, ClusterTemplate.
ANNOTATION = b"Lorg/apache/kafka/common/test/api/ClusterTe"
REPORTS = "TEST-*.xml"
PACKAGE = "org.apache.kafka."
# Those of the core are in packages of their own.
CORE_PACKAGE = "kafka."
HEAP_MIB = 700
_RUNS_TWICE = "the same test runs as KRAFT"


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaTests:
    """Ready to be run: the jars, with the compiled shim in front."""

    jars: KafkaJars

    def classes(self) -> list[str]:
        """The classes that have tests, without `PACKAGE` in front."""
        (jar,) = self.jars.directory.glob(TESTS_JAR)
        with zipfile.ZipFile(jar) as opened:
            return sorted(
                entry.removesuffix(".class").replace("/", ".").removeprefix(PACKAGE)
                for entry in opened.namelist()
                if entry.endswith(".class") and "$" not in entry and ANNOTATION in opened.read(entry)
            )

    def command(
        self,
        test_class: str,
        *,
        hook: Sequence[str],
        without: Sequence[str],
        only: Sequence[str],
        limit_s: float,
        reports: Path,
    ) -> list[str]:
        """The command line that runs tests of one class, each at most so long: all but some methods, or only some."""
        return [
            *self.jars.command(
                "org.junit.platform.console.ConsoleLauncher",
                heap_mib=HEAP_MIB,
                log_level="ERROR",
                options=(*SHORT_RUN_OPTIONS, "-Dpenstock.hook=" + "\t".join(hook), f"-Dpenstock.limit={limit_s:.0f}"),
            ),
            *("execute", "--disable-banner", "--disable-ansi-colors"),
            *("--details=testfeed", f"--reports-dir={reports}", f"--select-class={_whole(test_class)}"),
            # The shim's own limit holds instead.
            *("--config", "junit.jupiter.execution.timeout.mode=disabled"),
            *(f"--exclude-methodname=^.*#{method}$" for method in without),
            *(f"--include-methodname=^.*#{method}$" for method in only),
        ]


def prepare(work: Path, shims: Sequence[Path] = (SHIM,)) -> JavaTests:
    """Fetches the jars, if that was not done yet, and compiles the shims. Raises SuiteUnavailableError."""
    try:
        jars = install(POM, name="kafka-integration-tests")
    except JarsUnavailableError as missing:
        raise SuiteUnavailableError(str(missing)) from missing
    classes = work / "shim"
    compile_java(jars, sorted(file for shim in shims for file in shim.rglob("*.java")), classes)
    return JavaTests(jars=replace(jars, in_front=(classes,)))


def read_reports(folder: Path) -> Iterator[Result]:
    """What JUnit wrote of a run, each test once, by the name `package.Class.method(Parameter)[invocation]`.

    Invocations are counted anew: those that the shim turns off, because they differ in nothing, come at any place.
    """
    invocations: Counter[str] = Counter()
    for result in sorted(_all_results(folder), key=lambda result: _split(result.test)):
        if _RUNS_TWICE not in result.detail:
            name, _ = _split(result.test)
            invocations[name] += 1
            yield dataclasses.replace(result, test=f"{name}[{invocations[name]}]")


def _all_results(folder: Path) -> Iterator[Result]:
    for report in folder.glob(REPORTS):
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            yield _result(case)


def _split(test: str) -> tuple[str, int]:
    """A test's name without its invocation, and the invocation; 1 for a test that has none."""
    if not test.endswith("]"):
        return test, 1
    name, _, invocation = test.removesuffix("]").rpartition("[")
    return name, int(invocation)


def _whole(test_class: str) -> str:
    """A class's name with its whole package."""
    return test_class if test_class.startswith(CORE_PACKAGE) else f"{PACKAGE}{test_class}"


def method_of(test: str) -> str:
    """The method's own name in a test's name."""
    return test.partition("(")[0].rpartition(".")[2]


def class_of(test: str) -> str:
    """The class in a test's name, with its package."""
    return test.partition("(")[0].rpartition(".")[0]


def _result(case: xml.etree.ElementTree.Element) -> Result:
    status, detail = Status.PASSED, ""
    for child in case:
        if child.tag in ("failure", "error"):
            status, detail = Status.FAILED, child.text or str(child.get("message"))
        elif child.tag == "skipped" and status is Status.PASSED:
            status, detail = Status.SKIPPED, child.text or str(child.get("message"))
    return Result(
        test=f"{case.get('classname', '').removeprefix(PACKAGE)}.{case.get('name')}",
        status=status,
        seconds=float(case.get("time", 0)),
        detail=detail.strip(),
    )
