"""What the committed ACLs allow: pure evaluation."""
