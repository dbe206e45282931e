"""The app: a data steward makes a release in the browser, on this machine alone.

The state is the job. Every change makes a new job in a history on disk; everything that takes time runs in a child
process; pages are rendered on the server, so that every form works without scripts.
"""
