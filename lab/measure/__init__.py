"""Plan, carry out and record."""
