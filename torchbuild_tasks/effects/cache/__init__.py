"""Runs a compiler cache beside a build: its server, its folder, its shared level, its statistics."""
