"""Runs and asks the schedulers and servers of distributed compiles (sccache-dist)."""
