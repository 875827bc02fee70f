"""What a node has loaded when its tasks begin: start-up is little else."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from penstock.broker.node.unused_modules import leave_out
leave_out()
import penstock.broker.node.main, penstock.broker.node.voter_link
loaded = [name.split(".") for name, module in sys.modules.items() if module is not None]
unused = {"argparse", "cryptography.hazmat", "email", "hypothesis"}
print(*sorted(unused & {".".join(names) for names in loaded}))
print(*sorted({names[2] for names in loaded if names[:2] == ["kio", "schema"] and len(names) == 4}))
"""


def test_what_most_nodes_are_never_asked_is_not_loaded_and_no_library_brings_more() -> None:
    answer = subprocess.run([sys.executable, "-P", "-c", PROGRAM], capture_output=True, text=True, check=True)
    libraries, messages = answer.stdout.split("\n", 1)
    assert libraries.split() == []
    assert messages.split() == [
        "allocate_producer_ids",
        "api_versions",
        "assign_replicas_to_dirs",
        "broker_heartbeat",
        "broker_registration",
        "metadata",
        "request_header",
        "response_header",
    ]
