"""A survey with design weights: which totals are kept, who can be found, and how to publish the weights themselves."""

import numpy as np
import pyarrow as pa

import shoal


def survey(n=1500, seed=5):
    """Invent people of two regions, one of them sampled ten times as densely."""
    rng = np.random.default_rng(seed)
    region = rng.choice(["city", "country"], n, p=[0.7, 0.3])
    weight = np.where(region == "city", 40.0, 400.0) * rng.uniform(0.8, 1.2, n)
    return pa.table(
        {
            "region": region,
            "age": rng.integers(18, 90, n),
            "income": rng.lognormal(np.where(region == "city", 8.2, 7.9), 0.5).round(),
            "votes": rng.choice(["left", "right", "none"], n),
            "weight": weight,
        }
    )


def weighted_total(table, weights):
    return float(np.sum(weights * table["income"].to_numpy()))


def main():
    people = survey()
    truth = people["weight"].to_numpy()
    roles = {"by": ["region"], "confidential": ["votes"]}

    plain = shoal.anonymize(people, k=5, seed=1, quasi_identifiers=["age", "income"], identifiers=["weight"], **roles)
    weighted = shoal.anonymize(people, k=5, seed=1, quasi_identifiers=["age", "income"], weights="weight", **roles)
    print(f"total income, weighted   {weighted_total(people, truth):>15,.0f}")
    print(f"  cells of plain means   {weighted_total(plain.table, truth):>15,.0f}")
    print(f"  cells of weighted means{weighted_total(weighted.table, truth):>15,.0f}")

    risk = weighted.risk.classes
    print(f"found, if known to have taken part: {risk.prosecutor_max:.1%} at most; if not: {risk.journalist_max:.2%}")

    # The weights are needed, and can identify people: grouped like any other column, they can be published.
    columns = ["age", "income", "weight"]
    published = shoal.anonymize(people, k=5, seed=1, quasi_identifiers=columns, weights="weight", **roles).table
    print(f"with published weights   {weighted_total(published, published['weight'].to_numpy()):>15,.0f}")


if __name__ == "__main__":
    main()
