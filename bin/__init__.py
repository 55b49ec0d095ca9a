"""Scripts for maintainers; the noxfile runs them."""
