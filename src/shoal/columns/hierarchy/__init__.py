"""Hierarchies of values: read from files or built by rules. One file per form, and the registry."""

from shoal.columns.hierarchy.tree import Hierarchy

__all__ = ["Hierarchy"]
