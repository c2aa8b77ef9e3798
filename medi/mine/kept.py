"""How the products of a tile are kept and compared: in float32, or in bfloat16 by their bits, which is faster."""

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    import torch

# Matrix units take numbers below 2^-126 for 0.
FLUSHED = 2.0**-100


class Kept(Protocol):
    """The seam between products and what is done with them. Arrays of what is compared may have any shape."""

    # What a product takes, and what it may be the sum of; what is below all that is compared.
    bytes: int
    lowest: float
    # Keeping a product takes so much of it at most.
    lost: float

    def empty(self, *shape: int) -> "torch.Tensor":
        """Return a tensor to be filled; made by numpy, which asks for large pages, as torch does not."""
        ...

    def compared(self, products: "torch.Tensor") -> "torch.Tensor":
        """Return kept products as what is compared, a view."""
        ...

    def read(self, compared: np.ndarray) -> np.ndarray:
        """Return what was compared as float32."""
        ...

    def can_cut(self, product: np.ndarray) -> np.ndarray:
        """Return whether all that is below a product float64 [b] also compares below it, bool [b]."""
        ...

    def least(self, cut: np.ndarray) -> np.ndarray:
        """Return the greatest number not above the cut float64 [b], or the least there is, as what is compared.

        It is never the lowest.
        """
        ...


class _Float32:
    bytes = 12
    lowest = -np.inf
    lost = 0.0

    def empty(self, *shape: int) -> "torch.Tensor":
        import torch

        return torch.from_numpy(np.empty(shape, dtype=np.float32))

    def compared(self, products: "torch.Tensor") -> "torch.Tensor":
        return products

    def read(self, compared: np.ndarray) -> np.ndarray:
        return compared

    def can_cut(self, product: np.ndarray) -> np.ndarray:
        return np.isfinite(product)

    def least(self, cut: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            near = np.nextafter(cut.astype(np.float32), np.float32(-np.inf))
        return np.maximum(near, np.finfo(np.float32).min)


class _Bfloat16:
    """Compared as int16: above 0 bits keep the order of their numbers, and are above all that are not."""

    bytes = 2
    lowest = float(np.iinfo(np.int16).min)
    # Half the distance of neighbouring bfloat16 (8 bits) just above 1, and a little more.
    lost = 2.0**-8 * 1.01

    def empty(self, *shape: int) -> "torch.Tensor":
        import torch

        return torch.from_numpy(np.empty(shape, dtype=np.int16)).view(torch.bfloat16)

    def compared(self, products: "torch.Tensor") -> "torch.Tensor":
        import torch

        return products.view(torch.int16)

    def read(self, compared: np.ndarray) -> np.ndarray:
        return (compared.astype(np.int32) << 16).view(np.float32)

    def can_cut(self, product: np.ndarray) -> np.ndarray:
        return np.isfinite(product) & (product > FLUSHED)

    def least(self, cut: np.ndarray) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            near = np.nextafter(np.where(cut > FLUSHED, cut, 0).astype(np.float32), np.float32(0))
        return np.maximum(near.view(np.int32) >> 16, 1).astype(np.int16)


FLOAT32: Kept = _Float32()
BFLOAT16: Kept = _Bfloat16()
