"""Frames with intervals to pictures and pages; computes nothing."""
