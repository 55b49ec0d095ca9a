"""What `import torch` loads, resolved without loading it: the loaders of Linux and Windows by their rules."""
