"""Series: releases that belong together, of the same people or of people who come and go: ``docs/series.md``."""
