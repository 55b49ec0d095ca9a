"""Reads libraries as files: nothing in them is loaded or run."""
