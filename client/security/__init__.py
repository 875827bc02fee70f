"""Who may do what, and how much of it, as the terminal sees and changes it: users, ACLs, quotas, delegation tokens."""
