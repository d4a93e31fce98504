"""Datasets: parquet parts on disk, how they are filled, split, checked and described."""
