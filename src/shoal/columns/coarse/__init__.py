"""Coarse values: intervals, sets, ancestors and periods, as they are published and as they are read back.

A coarse value stands for several plain ones and is true of every record that shows it. One form per file: how it is
written, and how it is read. ``docs/truthful.md`` defines the texts.
"""

from shoal.columns.coarse.column import Coarse, form_of, read_coarse, stand_ins
from shoal.columns.coarse.ranges import Ranges
from shoal.columns.coarse.reading import read_published
from shoal.columns.coarse.sets import Sets

__all__ = ["Coarse", "Ranges", "Sets", "form_of", "read_coarse", "read_published", "stand_ins"]
