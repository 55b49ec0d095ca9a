"""Manifests: read and refused, freed of credentials, compared, and planned from again."""
