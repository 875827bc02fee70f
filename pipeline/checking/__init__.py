"""The checkers of `chaos` over histories and topics that outgrow one machine: key by key, on Spark."""
