"""HTTP administration of a node: what operators ask of it by HTTP, answered by the node's own handlers and metadata."""
