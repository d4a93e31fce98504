"""Pictures of runs, datasets and models."""
