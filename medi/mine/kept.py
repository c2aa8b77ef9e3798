"""How the products of a tile are kept and compared: in float32, or in bfloat16 by their bits, which is faster."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

# Matrix units take numbers below 2^-126 for 0.
FLUSHED = 2.0**-100


class Kept:
    """Products in float32, compared as they are. Arrays of what is compared may have any shape."""

    # What a product takes, and what it may be the sum of.
    bytes = 12
    # Below all that is compared.
    lowest: float = -np.inf
    # Keeping a product takes so much of it at most.
    lost = 0.0

    def empty(self, *shape: int) -> "torch.Tensor":
        """Return a tensor to be filled; made by numpy, which asks for large pages, as torch does not."""
        import torch

        return torch.from_numpy(np.empty(shape, dtype=np.float32))

    def compared(self, products: "torch.Tensor") -> "torch.Tensor":
        """Return kept products as what is compared, a view."""
        return products

    def read(self, compared: np.ndarray) -> np.ndarray:
        """Return what was compared as float32."""
        return compared

    def can_cut(self, product: np.ndarray) -> np.ndarray:
        """Return whether all that is below a product float64 [b] also compares below it, bool [b]."""
        return np.isfinite(product)

    def least(self, cut: np.ndarray) -> np.ndarray:
        """Return the greatest number that is not above the cut float64 [b], as what is compared; never the lowest."""
        with np.errstate(over="ignore", invalid="ignore"):
            near = np.nextafter(cut.astype(np.float32), np.float32(-np.inf))
        return np.maximum(near, np.finfo(np.float32).min)


class KeptHalf(Kept):
    """Products in bfloat16, compared as int16: above 0 they keep their order, and are above all that are not."""

    bytes = 2
    lowest = np.iinfo(np.int16).min
    # Half the distance of neighbouring bfloat16 (8 bits) just above 1, and a little more.
    lost = 2.0**-8 * 1.01

    def empty(self, *shape: int) -> "torch.Tensor":
        """Return a tensor of bfloat16."""
        import torch

        return torch.from_numpy(np.empty(shape, dtype=np.int16)).view(torch.bfloat16)

    def compared(self, products: "torch.Tensor") -> "torch.Tensor":
        """Return the bits of products."""
        import torch

        return products.view(torch.int16)

    def read(self, compared: np.ndarray) -> np.ndarray:
        """Return the numbers of bits."""
        return (compared.astype(np.int32) << 16).view(np.float32)

    def can_cut(self, product: np.ndarray) -> np.ndarray:
        """Return whether a product is above 0, and above what may have been taken for 0."""
        return np.isfinite(product) & (product > FLUSHED)

    def least(self, cut: np.ndarray) -> np.ndarray:
        """Return the bits of the greatest number above 0 that is not above the cut; where there is none, the least."""
        with np.errstate(over="ignore", invalid="ignore"):
            near = np.nextafter(np.where(cut > FLUSHED, cut, 0).astype(np.float32), np.float32(0))
        return np.maximum(near.view(np.int32) >> 16, 1).astype(np.int16)


FLOAT32, BFLOAT16 = Kept(), KeptHalf()
