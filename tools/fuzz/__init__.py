"""Damaged files, thrown at everything that reads files."""
