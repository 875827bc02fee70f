"""Groups, their coordinators, and transactions."""

from typing import Final

from .expressions import ONE, REPLICAS, REQUESTS, most, rate, total
from .panel import Dashboard, Panel

GROUPS: Final = "kafka_server_group_coordinator_metrics_"

DASHBOARD: Final = Dashboard(
    name="groups",
    title="Penstock: groups and transactions",
    rows=[
        (
            "Groups",
            [
                Panel(
                    title="Groups by protocol",
                    queries=[(total(GROUPS + "group_count", "protocol"), "{{protocol}}")],
                ),
                Panel(
                    title="Classic groups by state",
                    queries=[(total(GROUPS + "classic_group_count", "state"), "{{state}}")],
                ),
                Panel(
                    title="Consumer groups by state",
                    queries=[(total(GROUPS + "consumer_group_count", "state"), "{{state}}")],
                ),
                Panel(title="Members", queries=[(total("penstock_group_members", "protocol"), "{{protocol}}")]),
                Panel(
                    title="Commits of offsets",
                    unit="ops",
                    queries=[(rate(GROUPS + "offset_commit_count", "instance"), "{{instance}}")],
                ),
                Panel(
                    title="Completed rebalances",
                    unit="ops",
                    queries=[(rate(GROUPS + "group_completed_rebalance_count", "instance"), "{{instance}}")],
                ),
                Panel(
                    title="Committed offsets that are kept",
                    queries=[
                        (
                            total("kafka_coordinator_group_groupmetadatamanager_numoffsets", "instance"),
                            "{{instance}}",
                        )
                    ],
                ),
                Panel(
                    title="Coordinators by state",
                    queries=[(total(GROUPS + "num_partitions", "state"), "{{state}}")],
                ),
            ],
        ),
        (
            "Transactions",
            [
                Panel(
                    title="Transactional ids by state",
                    queries=[(total("penstock_transactional_ids", "state"), "{{state}}")],
                ),
                Panel(
                    title="Coordinators",
                    queries=[(total("penstock_transaction_coordinators", "instance"), "{{instance}}")],
                ),
                Panel(
                    title="EndTxn (quantiles)",
                    unit="ms",
                    queries=[(most(REQUESTS + "totaltimems", "quantile", ONE + ',request="EndTxn"'), "{{quantile}}")],
                ),
                Panel(
                    title="Partitions whose transaction should have ended",
                    queries=[(total(REPLICAS + "partitionswithlatetransactionscount", "instance"), "{{instance}}")],
                    warn=1,
                ),
                Panel(
                    title="Producer ids that logs remember",
                    queries=[(total(REPLICAS + "produceridcount", "instance"), "{{instance}}")],
                ),
            ],
        ),
    ],
)
