"""Groups of the consumer protocol (KIP-848): the coordinator assigns, heartbeats bring members there."""
