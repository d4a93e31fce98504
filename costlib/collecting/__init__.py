"""Measuring programs into datasets: plans, which programs, mutation records, refinement."""
