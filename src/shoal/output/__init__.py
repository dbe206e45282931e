"""Output: a release becomes files or tables that appear together or not at all."""
