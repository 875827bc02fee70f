"""Commands that look at a cluster and look after it, over the HTTP administration of any node."""
