"""Make ready: the engine, its flags, the models, and what is missing."""
