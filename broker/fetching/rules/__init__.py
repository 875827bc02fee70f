"""Rules for fetch sessions and for the preferred read replica: pure, no input or output."""
