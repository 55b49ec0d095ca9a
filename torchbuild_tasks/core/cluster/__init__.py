"""Distributed compiles: what a scheduler is called, its files, and what a build makes of it."""
