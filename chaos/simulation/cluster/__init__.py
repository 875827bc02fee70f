"""The whole cluster with its clients: real nodes and unmodified clients on a loop, network and disks of memory."""
