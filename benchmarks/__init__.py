"""Ratios, side by side in one run, each printed with the command that gave it. Never a test."""
