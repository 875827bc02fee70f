"""Client libraries as they are, in programs that report each acknowledgement: the cluster as clients see it.

Each is started as `PROGRAM bootstrap topic write partitions`, which sends a record to each of the partitions every 5 ms
(`acks=all`), or `… commit group`, which reads the topic as the only member of a group and commits what it has read.
It prints `ack PARTITION` or `commit` for each that was acknowledged, and ends when its standard input does. Apart from
where the cluster is, and that nothing waits for a batch to fill, everything is at the library's defaults.
"""
