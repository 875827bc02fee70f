"""Rules of copies: what a position and a run are, how offsets are translated, and which topics the sink gets."""
