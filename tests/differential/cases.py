"""All cases: importing this registers them, in the order in which they are played."""

from differential import (
    case_configs,
    case_connections,
    case_features,
    case_fetch,
    case_groups,
    case_metadata,
    case_offsets,
    case_produce,
    case_security,
    case_topics,
    case_transactional_records,
    case_transactions,
)
from differential.script import CASES

__all__ = [
    "CASES",
    "case_configs",
    "case_connections",
    "case_features",
    "case_fetch",
    "case_groups",
    "case_metadata",
    "case_offsets",
    "case_produce",
    "case_security",
    "case_topics",
    "case_transactional_records",
    "case_transactions",
]
