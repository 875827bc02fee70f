"""Raft without input and output: one step at a time, around the library that decides."""
