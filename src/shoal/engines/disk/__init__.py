"""Disk: releases of tables larger than memory, on one machine. The stages are those of `shoal.engines.blocks`.

Records are read in batches and lie in a scratch folder between the stages, in pieces of which a stage reads what
belongs to a block.
"""
