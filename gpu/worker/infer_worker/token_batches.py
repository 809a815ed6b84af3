"""Groups texts of similar length into batches."""

from collections.abc import Sequence

TOKENS = 8192
"""The most tokens of one batch, with padding, unless one text alone has more."""


def token_batches(lengths: Sequence[int], most: int = TOKENS) -> list[list[int]]:
    """Positions of the texts of each batch, longest first, so that the first batch needs the most memory."""
    batches: list[list[int]] = []
    for at in sorted(range(len(lengths)), key=lambda at: -lengths[at]):
        longest = lengths[batches[-1][0]] if batches else 0
        if batches and (len(batches[-1]) + 1) * longest <= most:
            batches[-1].append(at)
        else:
            batches.append([at])
    return batches
