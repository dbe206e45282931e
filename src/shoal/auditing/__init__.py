"""Auditing: published tables checked against what they promise, and against the originals."""
