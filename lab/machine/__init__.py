"""What the hardware is, what it does during a measurement, what its memory sustains."""
