"""Work on the files of logs that no node uses: compaction, and archives that move partitions between clusters."""
