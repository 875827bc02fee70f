"""The rules of Raft around the library, one step at a time, and the voter that runs them."""
