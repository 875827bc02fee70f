"""The metadata quorum: who leads it, and how far each node has come."""

from typing import Final

from .expressions import ALL, CONTROLLER, RAFT, most, total
from .panel import Dashboard, Panel, stat

APPLIED: Final = "kafka_server_brokermetadatametrics_last_applied_record_offset"
BEHIND: Final = f"scalar({most(RAFT + 'high_watermark', where=ALL)}) - 1 - {most(APPLIED, 'instance')}"

DASHBOARD: Final = Dashboard(
    name="quorum",
    title="Penstock: metadata quorum",
    rows=[
        (
            "Who leads",
            [
                stat("Leader", most(RAFT + "current_leader", where=ALL)),
                stat("Epoch", most(RAFT + "current_epoch", where=ALL)),
                stat("Voters", most(RAFT + "number_of_voters", where=ALL)),
                stat("Observers", most(RAFT + "number_of_observers", where=ALL)),
                stat(
                    "Voters without a connection",
                    most(RAFT + "number_unknown_voter_connections", where=ALL),
                    warn=1,
                ),
                Panel(
                    title="Role of each node",
                    kind="state-timeline",
                    queries=[
                        (
                            f"({total(RAFT + 'current_state', 'instance, current_state')}) == 1",
                            "{{instance}} {{current_state}}",
                        )
                    ],
                ),
                Panel(title="Epoch", queries=[(most(RAFT + "current_epoch", "instance"), "{{instance}}")]),
            ],
        ),
        (
            "The log",
            [
                Panel(title="End of the log", queries=[(most(RAFT + "log_end_offset", "instance"), "{{instance}}")]),
                Panel(
                    title="Metadata records that nodes lack",
                    queries=[
                        (
                            BEHIND,
                            "{{instance}}",
                        )
                    ],
                ),
                Panel(
                    title="Proposal to commit",
                    unit="ms",
                    queries=[
                        (most(RAFT + "commit_latency_avg", "instance"), "{{instance}} average"),
                        (most(RAFT + "commit_latency_max", "instance"), "{{instance}} longest"),
                    ],
                ),
                Panel(
                    title="Elections",
                    unit="ms",
                    queries=[
                        (most(RAFT + "election_latency_avg", "instance"), "{{instance}} average"),
                        (most(RAFT + "election_latency_max", "instance"), "{{instance}} longest"),
                    ],
                ),
                Panel(
                    title="Records appended",
                    unit="ops",
                    queries=[(most(RAFT + "append_records_rate", "instance"), "{{instance}}")],
                ),
                Panel(
                    title="Changes of the active controller",
                    queries=[(most(CONTROLLER + "newactivecontrollerscount", "instance"), "{{instance}}")],
                ),
                Panel(
                    title="Brokers fenced early",
                    queries=[
                        (total("penstock_fast_fencings_total", "instance"), "{{instance}}"),
                        (total("penstock_fast_fencings_wrong_total", "instance"), "{{instance}} that were alive"),
                    ],
                ),
                Panel(
                    title="Sessions of brokers that timed out",
                    queries=[(total(CONTROLLER + "timedoutbrokerheartbeatcount", "instance"), "{{instance}}")],
                ),
            ],
        ),
    ],
)
