"""Ansor's evolution, scored in two stages, and its parts."""
