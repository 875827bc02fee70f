"""What clients do while faults happen, through real client libraries, and the history that it leaves."""
