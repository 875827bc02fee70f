"""The log directories of a node and all logs in them."""
