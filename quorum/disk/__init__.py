"""What a voter keeps: its journal and its snapshots."""
