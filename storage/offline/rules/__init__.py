"""What archives hold, and how batches are made independent of the cluster they come from."""
