"""What compaction keeps, batch by batch, as functions of their input."""
