"""What a source is to be: which ref, which submodules, how much room, what a failure means."""
