"""Unpacks archives: judged before, bounded while, whole or not at all."""
