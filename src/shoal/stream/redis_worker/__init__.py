"""Worker: a k-anonymous stream between two Redis Streams, which neither loses nor duplicates a tuple after any failure.

A worker holds a lease, reads the entries after the last one it has used, and commits with one script: what was
released, what went to the side output, and how the state has changed. A failure before the script leaves no trace;
after it, everything is committed. A worker without the lease cannot commit. Needs the extra ``redis`` and Redis 7.
"""

from shoal.job import RedisSettings
from shoal.stream.redis_worker.redis_keys import FIELD, ID
from shoal.stream.redis_worker.worker import Worker

__all__ = ["FIELD", "ID", "RedisSettings", "Worker"]
