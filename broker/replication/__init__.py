"""How replicas follow their leaders, and leaders tell the controller who does."""
