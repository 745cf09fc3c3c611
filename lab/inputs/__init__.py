"""What people write: prompts, profiles and model files, read and checked."""
