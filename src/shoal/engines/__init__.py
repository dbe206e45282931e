"""Engines: releases of more records than fit into memory, on one machine or on a cluster."""
