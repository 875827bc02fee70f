"""Takes the golden matrix anew: part of `make differential-golden`. Needs Java and Maven.

Asks a new Apache Kafka, writes `tests/golden/kafka-4.3.1-permissions.json.xz`, and the same for people to a file if one
is named.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from differential.permissions import brokers
from differential.permissions.golden import FILE, as_text, write_golden
from differential.permissions.questions import PROBES

from penstock.local.apache_kafka.jars import install


def main() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="penstock-permissions-") as folder,
        brokers.apache_kafka(install(), Path(folder)) as matrix,
    ):
        rows = {name: matrix.row_of(probe) for name, probe in PROBES.items()}
    write_golden(rows)
    for file in sys.argv[1:]:
        Path(file).write_text(as_text(rows))
    cells = sum(len(states) for row in rows.values() for states in row.values())
    sys.stdout.write(f"{len(rows)} questions, {cells} cells, {FILE.stat().st_size} bytes in {FILE.name}\n")


if __name__ == "__main__":
    main()
