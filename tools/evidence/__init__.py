"""The files of ``tools/results``, and the summaries, tables, pictures and pages made of them."""
