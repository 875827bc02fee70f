"""Bodies of the HTTP administration, as typed values: the same classes for the node that serves and for its clients."""
