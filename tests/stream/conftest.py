"""A Redis for the tests of a module, and a connection to it."""

import pytest


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    import redis_streams

    with redis_streams.running(tmp_path_factory.mktemp("redis")) as socket:
        yield socket


@pytest.fixture
def connection(server):
    from redis import Redis

    with Redis(unix_socket_path=server) as connection:
        connection.flushall()
        yield connection
