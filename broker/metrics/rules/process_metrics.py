"""The process: its event loop, garbage collection, and what the exposition itself leaves out."""

from __future__ import annotations

from typing import Final

from .metric import own

BUILD_INFO: Final = own("gauge", "penstock_build_info", "1; its labels are this software.", "version", "node_id")
LOOP_LAG: Final = own(
    "summary", "penstock_loop_lag_seconds", "How late the event loop calls what is due, sampled twice a second."
)
LOOP_LAG_MAX: Final = own("gauge", "penstock_loop_lag_max_seconds", "The longest of these of the last minutes.")
TURN_LENGTH: Final = own(
    "summary", "penstock_loop_turn_seconds", "Lengths of turns of the event loop, sampled twice a second."
)
TURN_LENGTH_MAX: Final = own("gauge", "penstock_loop_turn_max_seconds", "The longest of these of the last minutes.")
GARBAGE_PAUSES: Final = own(
    "summary", "penstock_garbage_collection_seconds", "Pauses of Python's cyclic garbage collector."
)
GARBAGE_PAUSE_MAX: Final = own(
    "gauge", "penstock_garbage_collection_max_seconds", "The longest of these of the last minutes."
)
CERTIFICATE_EXPIRY: Final = own(
    "gauge",
    "penstock_certificate_not_after_seconds",
    "When the first certificate of the chain that a listener shows ends to be valid: seconds since 1970.",
    "listener",
)
EXPOSITIONS: Final = own("counter", "penstock_metrics_expositions_total", "Expositions of metrics that were made.")
HIDDEN_TOPICS: Final = own(
    "gauge", "penstock_metrics_hidden_topics", "Topics without series of their own, because there are too many."
)
HIDDEN_PARTITIONS: Final = own(
    "gauge", "penstock_metrics_hidden_partitions", "Replicas without series of their own, because there are too many."
)
