"""Checkouts of PyTorch: got, moved, mended and mirrored by git."""
