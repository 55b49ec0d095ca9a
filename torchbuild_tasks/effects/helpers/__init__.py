"""Keeps the helpers of builds: had once, checked, found again, pruned."""
