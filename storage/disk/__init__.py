"""Files and folders, real and in memory: the one place that touches them."""
