"""Runs one model of a Python library as an engine of infer: HTTP of the standard library, one process per model."""
