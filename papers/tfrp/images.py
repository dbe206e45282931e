"""Data sets made of the pixels of two photographs: each block of 2 x 2 or 4 x 4 pixels is a record.

The paper cuts up "Lena" and "Girl", which are not free to use. Here two pictures of the same size, 512 x 512 with 256
grey levels, come from the scikit-image package: ``astronaut`` (NASA, public domain; its luminance) and ``camera``
(Lav Varshney, CC0).
"""

from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from papers.data_and_results import Missing
from shoal.datasets import Dataset
from shoal.typing import Matrix

NAMES = ("astronaut", "camera")
"""The replacements of Lena and Girl."""


def picture(name: str, side: int = 512) -> NDArray[np.float64] | Missing:
    """Return the grey levels of the `side` x `side` pixels in the middle of a picture."""
    try:
        data = import_module("skimage").data
    except ModuleNotFoundError as error:
        if error.name != "skimage":
            raise
        return Missing(name, "scikit-image is not installed: pip install scikit-image")
    pixels = np.asarray(getattr(data, name)(), dtype=np.float64)
    if pixels.ndim == 3:
        pixels = np.round(pixels[..., :3] @ (0.299, 0.587, 0.114))
    top, left = ((length - side) // 2 for length in pixels.shape)
    return pixels[top : top + side, left : left + side]


def blocks(pixels: NDArray[np.float64], side: int) -> Matrix:
    """Cut a picture into blocks of `side` x `side` pixels, one record each, row by row.

    Examples
    --------
    >>> blocks(np.arange(8.0).reshape(2, 4), 2)
    array([[0., 1., 4., 5.],
           [2., 3., 6., 7.]])
    """
    rows, columns = (length // side for length in pixels.shape)
    cut = pixels[: rows * side, : columns * side].reshape(rows, side, columns, side)
    return np.ascontiguousarray(cut.transpose(0, 2, 1, 3).reshape(rows * columns, side * side))


def block_sets(side: int) -> list[Dataset | Missing]:
    """Return the dense (2 x 2) and the sparse (4 x 4) set of each picture, `side` pixels wide."""
    sets: list[Dataset | Missing] = []
    for name in NAMES:
        pixels = picture(name, side)
        if isinstance(pixels, Missing):
            sets.append(pixels)
            continue
        for block in (2, 4):
            columns = tuple(f"pixel{i}" for i in range(block * block))
            note = f"Blocks of {block} x {block} pixels of the picture {name!r} in scikit-image."
            sets.append(Dataset(f"{name}-{block}x{block}", columns, blocks(pixels, block), note))
    return sets
