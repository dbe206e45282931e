"""Columns: what the columns of a table mean, from roles and kinds to coordinates."""
