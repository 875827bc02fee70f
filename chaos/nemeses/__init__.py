"""What breaks a cluster while clients use it: faults as data, in an order drawn from a seed or written in a file."""
