"""What jobs with state write batch by batch: results to topics and tables, and records that did not get into the
state."""
