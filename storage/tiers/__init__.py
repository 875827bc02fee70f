"""The tier of closed segments: a port of four calls, its implementation, and what a segment is made of up there."""
