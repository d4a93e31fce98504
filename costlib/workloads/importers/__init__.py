"""Importers: from files and objects of other frameworks to networks."""
