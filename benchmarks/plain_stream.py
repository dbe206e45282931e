"""Algorithm 3 of Domingo-Ferrer and Soria-Comas in plain Python: a list and a sort, without optimisation."""


def plain_stream(tuples, k, delay, order_weight):
    """Yield cells, each a list of arrival numbers; at the end the rest joins a last cell."""
    buffer = []
    for position, values in enumerate(tuples):
        buffer.append((position, (*values, position * order_weight)))
        if buffer[0][0] == position - delay:
            yield _cell(buffer, k)
    while len(buffer) >= 2 * k:
        yield _cell(buffer, k)
    if len(buffer) >= k:
        yield [position for position, _ in buffer]


def _cell(buffer, k):
    due = buffer[0][1]
    buffer.sort(key=lambda other: (sum((a - b) ** 2 for a, b in zip(due, other[1], strict=True)), other[0]))
    cell = [position for position, _ in buffer[:k]]
    del buffer[:k]
    buffer.sort()
    return sorted(cell)
