"""The jars of Apache Kafka, resolved once by Maven into a cache folder outside the source tree."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from ...client.cached_programs import cache_folder

POM = Path(__file__).with_name("pom.xml")
LOGGING = Path(__file__).with_name("log4j2.properties")
INSTALL_TIMEOUT_S = 600

SHORT_RUN_OPTIONS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""For processes that live seconds: small heap, first compiler only."""

SERVER_OPTIONS = (
    *("-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35"),
    "-XX:+ExplicitGCInvokesConcurrent",
)
"""What Apache Kafka's own start scripts give the JVM: for a broker that is measured."""


class JarsUnavailableError(Exception):
    """Apache Kafka cannot be had here; the message says what is missing and how to get it."""


class KafkaJars(Struct, frozen=True, kw_only=True):
    """An installed set of jars."""

    directory: Path
    java: str
    in_front: tuple[Path, ...] = ()
    """Folders of classes that win over those of the same name in the jars."""

    @property
    def version(self) -> str:
        """Apache Kafka's, by the name of its broker's jar; empty without one."""
        names = (jar.name for jar in self.directory.glob("kafka_2.13-*.jar"))
        return next((name.removeprefix("kafka_2.13-").removesuffix(".jar") for name in names), "")

    @property
    def classpath(self) -> str:
        """Every jar, as Java's wildcard."""
        return os.pathsep.join(map(str, (*self.in_front, self.directory / "*")))

    def command(
        self,
        main_class: str,
        *arguments: str,
        heap_mib: int = 256,
        log_level: str = "WARN",
        options: Sequence[str] = SHORT_RUN_OPTIONS,
    ) -> list[str]:
        """The command line that runs `main_class`, with these options for the JVM."""
        return [
            self.java,
            f"-Xmx{heap_mib}m",
            *options,
            "-Djava.awt.headless=true",
            f"-Dlog4j2.configurationFile={LOGGING}",
            f"-Danchor.log.level={log_level}",
            "-cp",
            self.classpath,
            main_class,
            *arguments,
        ]


def install(pom: Path = POM, *, name: str = "kafka-jars") -> KafkaJars:
    """The jars that a `pom.xml` asks for, resolved now if they are not in the cache yet.

    They lie in `cache_folder`, one folder of this name for each content of `pom.xml`.
    Raises `JarsUnavailableError` without Java 17 or newer, or when they must be resolved and Maven is missing or fails.
    """
    java = shutil.which("java")
    if java is None:
        raise JarsUnavailableError(
            "Apache Kafka's tools need Java 17 or newer (Debian: apt-get install default-jre-headless)"
        )
    stamp = hashlib.sha256(pom.read_bytes()).hexdigest()[:16]
    directory = cache_folder() / f"{name}-{stamp}"
    if not directory.is_dir():
        _resolve(pom, directory)
    return KafkaJars(directory=directory, java=java)


def _resolve(pom: Path, directory: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsUnavailableError("Apache Kafka's jars are fetched with Maven (Debian: apt-get install maven)")
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix="kafka-jars-") as work:
        # The pom is copied out so that Maven writes nothing beside the committed one.
        shutil.copy(pom, Path(work) / "pom.xml")
        try:
            result = subprocess.run(
                [
                    maven,
                    *("-B", "-q", "-f", str(Path(work) / "pom.xml")),
                    "dependency:copy-dependencies",
                    "-DincludeScope=runtime",
                    f"-DoutputDirectory={work}/lib",
                ],
                capture_output=True,
                text=True,
                timeout=INSTALL_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise JarsUnavailableError(f"Maven could not resolve Apache Kafka's jars: {error}") from error
        if result.returncode != 0:
            raise JarsUnavailableError(f"Maven could not resolve Apache Kafka's jars: {result.stdout[-600:].strip()}")
        try:
            # Renamed when whole: a second process that resolves at the same time finds all jars or none.
            Path(work, "lib").rename(directory)
        except OSError:
            if not directory.is_dir():
                raise
