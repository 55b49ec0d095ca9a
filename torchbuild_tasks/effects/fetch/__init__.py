"""Brings files from the network or a folder, whole and checked."""
