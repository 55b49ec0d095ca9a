"""A jobserver: gives the tokens of GNU make's protocol out, as many as the memory bears."""
