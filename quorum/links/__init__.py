"""Links between voters: how they greet each other, prove who they are, and carry messages."""
