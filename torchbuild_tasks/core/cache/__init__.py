"""Compiler caches: which one, with which settings, and what it did."""
