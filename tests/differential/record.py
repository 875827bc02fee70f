"""Takes the golden transcript anew: `make differential-golden`. Needs Java and Maven.

Plays the script against a new Apache Kafka and writes `tests/golden/kafka-4.3.1-answers.json.xz`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from differential import brokers
from differential.cases import CASES
from differential.golden import FILE, write_golden
from differential.player import Player

from penstock.local.apache_kafka.jars import install


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="penstock-differential-") as folder,
        brokers.apache_kafka(install(), Path(folder)) as kafka,
    ):
        transcript = Player(kafka).whole_transcript()
    write_golden(transcript)
    steps = sum(len(answers) for answers in transcript.values())
    sys.stdout.write(f"{len(CASES)} cases, {steps} answers, {FILE.stat().st_size} bytes in {FILE.name}\n")


if __name__ == "__main__":
    main()
