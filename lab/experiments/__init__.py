"""What each notebook asks: one experiment a file, each a plan and the reading of its records."""
