"""Tables that know how far they are: each commit carries the source positions that it has reached."""
