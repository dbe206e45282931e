"""Worker: a k-anonymous stream between two Redis Streams, which neither loses nor doubles a tuple, whatever stops when.

A worker holds a lease, reads entries after the last one it has used, and commits with one script: what was released,
what went aside, and how the state has changed. Whatever happens before the script has not happened; after it,
everything has. Who has lost the lease can no longer commit. Needs the extra ``redis`` and Redis 7.
"""

from shoal.stream.redis_worker.names import FIELD, ID, Limits, Names
from shoal.stream.redis_worker.worker import Worker

__all__ = ["FIELD", "ID", "Limits", "Names", "Worker"]
