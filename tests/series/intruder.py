"""An intruder who owns all releases of a series, and knows who is in which and how everybody is published.

It knows the published tables and whose records are whose, and nothing of how they were made: sets of people and lists
of values, compared by brute force.
"""

from itertools import chain, combinations


class Intruder:
    """What can be learned from some releases.

    Each release is a list of (person, what it shows in each column, confidential value, own value in each column). The
    own values are known only in so far as it is known whether they have changed.
    """

    def __init__(self, releases):
        self.releases = releases
        self.classes = []
        for release in releases:
            found = {}
            for person, shown, *_ in release:
                found.setdefault(shown, set()).add(person)
            self.classes.append(found)
        self.shown = [{person: shown for person, shown, *_ in release} for release in releases]
        self.value = [{person: value for person, _, value, _ in release} for release in releases]
        self.own = [{person: own for person, *_, own in release} for release in releases]
        for later, earlier in ((b, a) for b in range(len(releases)) for a in range(b)):
            for person in self.own[later].keys() & self.own[earlier].keys():
                # What was shown before is computed from the values that were there then.
                same = [
                    one == other
                    for one, other in zip(self.shown[later][person], self.shown[earlier][person], strict=True)
                ]
                values = zip(same, self.own[earlier][person], self.own[later][person], strict=True)
                self.own[later][person] = tuple(old if again else new for again, old, new in values)
        self.people = set(chain.from_iterable(self.shown))

    def candidates(self, person, places):
        """Return everybody who has the same class, or the same absence, in these releases."""
        alike = set(self.people)
        for place in places:
            shown = self.shown[place].get(person)
            alike &= self.classes[place][shown] if shown is not None else self.people - set(self.shown[place])
        return alike

    def values(self, person, places):
        """Return the values that are possible for a person whose value has not changed."""
        lists = [
            {self.value[place][other] for other in self.classes[place][self.shown[place][person]]}
            for place in places
            if person in self.shown[place]
        ]
        return set.intersection(*lists) if lists else None

    def differences(self, k):
        """Yield those by whom, fewer than k, a class differs from another one or from classes within it.

        Lists of confidential values differ by people; sums of a column also by those whose value has changed, and only
        if what a class shows in it is not what the other one has shown.
        """
        for one, other in combinations(range(len(self.releases)), 2):
            listed = [list(self.classes[place].items()) for place in (one, other)]
            for (shown_a, a), (shown_b, b) in ((a, b) for a in listed[0] for b in listed[1] if a[1] & b[1]):
                if 0 < len(a ^ b) < k and self.has_values:
                    yield a ^ b
                for column in range(len(shown_a)):
                    by = (a ^ b) | self.changed(a & b, one, other, column)
                    if shown_a[column] != shown_b[column] and 0 < len(by) < k:
                        yield by
            for narrower, wider in (listed, listed[::-1]):
                for shown, people in wider:
                    yield from self.remainders(shown, people, narrower, one, other, k)

    def remainders(self, shown, people, narrower, one, other, k):
        """Yield what is left of a class, fewer than k people, without the classes of another release within it."""
        whole = [(theirs, few) for theirs, few in narrower if few <= people]
        held = set().union(*(few for _, few in whole))
        if held and 0 < len(people - held) < k and self.has_values:
            yield people - held
        for column in range(len(shown)):
            by = (people - held) | self.changed(held, one, other, column)
            repeats = any(theirs[column] == shown[column] for theirs, _ in whole)
            if held and not repeats and 0 < len(by) < k:
                yield by

    @property
    def has_values(self):
        return any(value is not None for values in self.value for value in values.values())

    def changed(self, people, one, other, column):
        """Return who of some people has another value in a column in another release."""
        return {person for person in people if self.own[one][person][column] != self.own[other][person][column]}

    def attack(self, k, l, *, spared=frozenset()):  # noqa: E741 - as in the literature
        """Return what breaks the promise to anybody but those who are spared, by any two, three or all releases."""
        found = []
        n = len(self.releases)
        for places in chain(*(combinations(range(n), size) for size in {1, 2, 3, n} if size <= n)):
            for person in self.people - spared:
                if len(self.candidates(person, places)) < k:
                    found.append(("candidates", places, person))
                possible = self.values(person, places)
                if l is not None and possible is not None and len(possible) < l:
                    found.append(("values", places, person))
        found += [("difference", people) for people in self.differences(k) if people - spared]
        return found


def published(release, originals, columns, key, value):
    """Return a release as the intruder sees it, from the published table and the originals of its records."""
    shown, own = (
        list(zip(*(table[name].to_pylist() for name in columns), strict=True)) for table in (release, originals)
    )
    return list(zip(key, map(repr_of, shown), release[value].to_pylist(), own, strict=True))


def repr_of(row):
    """Return values as texts, so that numbers are the same only to the last digit."""
    return tuple(map(repr, row))
