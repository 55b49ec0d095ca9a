"""Puts CUDA toolkits together from unpacked parts."""
