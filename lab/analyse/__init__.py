"""Records to tidy frames to estimates to findings; draws nothing."""
