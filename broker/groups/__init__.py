"""Consumer groups: who is a member, what each member reads, and how far they have come."""
