"""One seam to whatever serves a model."""
