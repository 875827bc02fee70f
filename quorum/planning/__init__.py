"""What an operator asks of the metadata before acting: what a stop would cost, which replicas move where."""
