"""Cells: the partition of a table, with strata, households, subjects and models, and what each cell publishes."""
