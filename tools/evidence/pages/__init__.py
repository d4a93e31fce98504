"""The pages of results in ``docs/results``, written from result files alone."""
