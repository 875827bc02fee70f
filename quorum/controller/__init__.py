"""The active controller: decisions proposed, committed and published."""
