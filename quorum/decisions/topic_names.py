"""Which names a topic may have (KIP-37 and Kafka's `Topic`), and which of them are Kafka's own."""

import re

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
MAX_NAME_LENGTH = 249

_ALLOWED = re.compile(r"[a-zA-Z0-9._-]*")


def invalid_topic_name(name: str) -> str | None:
    """Return Kafka's sentence on what is wrong with a name, None when nothing is."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in {".", ".."}:
        reason = f"'{name}' is not allowed"
    # Java counts UTF-16 units.
    elif len(name.encode("utf-16-le", "surrogatepass")) // 2 > MAX_NAME_LENGTH:
        reason = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not _ALLOWED.fullmatch(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return None
    return f"Topic name is invalid: {reason}"
