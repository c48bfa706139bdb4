"""A sparse M on an NVIDIA GPU: factors stay there for the whole fit, and n x n numbers are never stored.

A pass goes over the support of M entry by entry, in the type of the factor. Its zeros are visited in one of two
ways. If few of them have X > 0, as late in the fit of a signed model, a scan in float16 lists those that can
have it, and only these are computed, again in the type of the factor: the result is that of all pairs. If there
are more, one kernel streams all pairs (:mod:`symrelu.kernels.device_products`). A sample of the rows of X
decides, so that the choice depends on U alone.

Without Triton, and for factors in float64 with many positive zeros, the blocks of
:class:`~symrelu.operators.torch.TorchOperator` serve.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from functools import wraps
from importlib.util import find_spec
from typing import Any, cast

import numpy as np
from scipy import sparse

from symrelu.kernels.one_time_warnings import warn_once
from symrelu.kernels.tiles import Sums
from symrelu.operators.base import Evaluation, EvaluationFailed
from symrelu.operators.tiled import evaluation_of
from symrelu.operators.torch import TorchOperator
from symrelu.operators.torch_pattern import Pattern
from symrelu.operators.torch_precision import Method, undisturbed  # explains what is missing
from symrelu.validation import check_choice

import torch  # isort: skip

HAS_TRITON = find_spec("triton") is not None
if HAS_TRITON:
    from triton.runtime.errors import OutOfResources
else:

    class OutOfResources(Exception):  # type: ignore[no-redef]
        """Never raised."""


_KERNELS = ("high", "fast")

# A fast pass has errors of 2e-4 in its product. A relative error of M is resolved down to a few times that.
_NOISE_FLOOR = 1e-3

# A list is used if an average row has at most so many positive zeros, and at most this part of all.
_MOST_POSITIVE = 64
_LARGEST_SHARE = 1 / 512

# Room for candidates of a block of rows: so many times what is expected, and at least this.
_ROOM = 3.0
_LEAST_ROOM = 512
_MOST_CANDIDATES = 2**27  # of all blocks: a gigabyte

# Rows of a factor whose products are summed up at once.
_ROWS_OF_A_GRAM = 4096

# Multiple of eps that sums of squares can lose.
_ROUNDING = 100


def keeping_the_factor(method: Method) -> Method:
    """Let a method that runs out of the memory of the GPU end the fit with the factor so far."""

    @wraps(method)
    def checked(self: Any, *arguments: Any, **settings: Any) -> Any:
        try:
            return method(self, *arguments, **settings)
        except torch.cuda.OutOfMemoryError as error:
            device = self.device
            free, total = torch.cuda.mem_get_info(device) if device.type == "cuda" else (0, 0)
            raise EvaluationFailed(
                f"The GPU has run out of memory: {free / 2**30:.1f} of {total / 2**30:.1f} GiB are free. Use a "
                "lower rank, float32, LBFGS(memory=5), or close other programs that use the GPU."
            ) from error

    return cast("Method", checked)


class CudaOperator(TorchOperator):
    """A sparse M on a GPU.

    Parameters
    ----------
    M : csr_array of shape (n, n)
    unknown : csr_array of bool, or None
    precision : {"high", "fast"}
        Of a pass in which many zeros are positive and the factor is in float32. "fast" rounds to float16, with
        errors around 2e-4; "high" has errors around 1e-6. A pass with a list of pairs has neither.
    always_lists : bool
        Whether the zeros are listed even where a pass over all pairs is faster.
    device : str or torch.device, default="cuda"
    **settings
        As in :class:`~symrelu.operators.torch.TorchOperator`.
    """

    def __init__(
        self,
        M: Any,
        unknown: Any | None = None,
        *,
        precision: str = "high",
        always_lists: bool = False,
        device: Any = "cuda",
        **settings: Any,
    ) -> None:
        super().__init__(M, unknown, device=device, **settings)
        self.precision = check_choice("precision", precision, _KERNELS)
        self.always_lists = always_lists
        self._pattern = Pattern(M, unknown, self.device)

    @classmethod
    def of(cls, M: Any, unknown: Any | None, **settings: Any) -> TorchOperator:
        """Return the operator of a checked matrix and its unobserved entries; a dense M has no lists."""
        check_cuda()
        if not sparse.issparse(M):
            for name in ("precision", "always_lists"):
                settings.pop(name, None)
            return TorchOperator(M, unknown, device="cuda", **settings)
        if not HAS_TRITON:
            warn_once(
                "triton", "Without triton, backend='cuda' is many times slower: pip install 'symrelu[cuda]'."
            )
        return cls(M, unknown, **settings)

    @classmethod
    def check_available(cls) -> None:
        check_cuda()

    @classmethod
    def check_size(cls, n: int, rank: int) -> None:
        if HAS_TRITON:
            from symrelu.kernels.device_products import check_offsets

            check_offsets(n, rank)

    @classmethod
    def check_device(cls, number: int) -> None:
        """Raise unless the GPU with this number is the one that will be used."""
        check_cuda()
        current = torch.cuda.current_device()
        if number != current:
            raise ValueError(
                f"M is on GPU {number}, and the current one, on which the fit would be, is {current}. Call "
                f"torch.cuda.set_device({number}) before, or pass M.to('cuda:{current}')."
            )

    @classmethod
    def free_memory(cls) -> int:
        """Return how many bytes of the GPU are free."""
        free, _ = torch.cuda.mem_get_info()
        return int(free)

    def approximate(self) -> CudaOperator:
        if not HAS_TRITON or self.dtype != np.float32:  # without a faster kernel
            return self
        other = copy.copy(self)
        other.precision = "fast"
        other.noise_floor = _NOISE_FLOOR
        return other

    def warm_up(self) -> None:
        if HAS_TRITON and self.device.type == "cuda":  # else there is nothing to compile
            self._pass_over_almost_nothing()

    @undisturbed
    def _pass_over_almost_nothing(self) -> None:
        """Make a pass of each kind, with the types and the rank of this operator, for two items.

        Fast passes with V = U have kernels of their own, and so have passes without V.
        """
        M, unknown = sparse.eye_array(2, dtype=self.dtype, format="csr"), sparse.csr_array((2, 2), dtype=bool)
        model = {"signature": self.signs, "at_least": self.at_least, "device": self.device}
        for lists in (True, False):
            op = CudaOperator(M, unknown, precision=self.precision, always_lists=lists, **model)
            U = op.asarray(np.tile(self.signs > 0, (2, 1)))  # else X need not be positive, and a list is used
            for V in (U, U.clone(), None):
                op._evaluate(U, V)
        if any(entries.pieces is not None for entries in self._pattern.entries):
            self._sum_up_long_rows(U)

    def _sum_up_long_rows(self, U: Any) -> None:
        """Sum up rows that are divided. Where M has some, the listed zeros may have some as well."""
        from symrelu.kernels.device_rows import KINDS, LONGEST, ZEROS, DeviceEntries, entry_sums

        long = {ZEROS, *(entries.kind for entries in self._pattern.entries if entries.pieces is not None)}
        lists = [DeviceEntries.of_one_row(kind, LONGEST + 1 if kind in long else 1, U) for kind in KINDS]
        entry_sums(lists, U, self.signature, U, self.zero_weight, self.at_least)

    @undisturbed
    @keeping_the_factor
    def solve_rows(self, V: Any, ridge: Any, *right: Any) -> tuple[Any, ...]:
        return super().solve_rows(V, ridge, *right)

    @keeping_the_factor
    def combined(self, scale: float, A: Any, weights: Sequence[float], others: Sequence[Any]) -> Any:
        return super().combined(scale, A, weights, others)

    @keeping_the_factor
    def add_scaled(self, A: Any, weight: float, B: Any) -> Any:
        return super().add_scaled(A, weight, B)

    @undisturbed
    @keeping_the_factor
    def _evaluate(self, U: Any, V: Any | None) -> Evaluation:
        if not HAS_TRITON:
            return super()._evaluate(U, V)
        U = U.contiguous()
        expected, all_scanned = self._sampled(U)
        listed = self._listed(U, expected, all_scanned)
        if listed is None and (U.dtype != torch.float32 or not math.isfinite(expected)):
            return super()._evaluate(U, V)
        right = None if V is None else V.contiguous()
        product, sums = self._of_entries(U, right, listed)
        totals = sums.sum(dim=0)
        if listed is None:
            try:
                totals = totals + self._add_all_pairs(U, right, product, expected)
            except OutOfResources:
                self._warn_of_large_tiles()
                return super()._evaluate(U, V)
        return evaluation_of(self, product, self._sums(U, totals))

    def _warn_of_large_tiles(self) -> None:
        warn_once(
            "large tiles",
            f"The tiles of the kernels for rank {self.rank} are too large for this GPU. A slower way with the "
            "same results is used. Please report this, with the name of the GPU.",
        )

    def _of_entries(self, U: Any, V: Any | None, listed: Any | None) -> tuple[Any | None, Any]:
        """Return what the support, the unobserved entries and the listed zeros contribute."""
        from symrelu.kernels.device_rows import entry_sums

        lists = [*self._pattern.entries, *([] if listed is None else [listed])]
        order = self._pattern.order if listed is None else None  # to find it takes long, and streaming needs it
        return entry_sums(lists, U, self.signature, V, self.zero_weight, self.at_least, order)

    def _add_all_pairs(self, U: Any, V: Any | None, product: Any | None, expected: float) -> Any:
        """Add what all zeros contribute to the product, and return the same of the sums."""
        from symrelu.kernels.device_products import subtract_positive
        from symrelu.kernels.device_tilings import has_large_tiles, tiling_of_product

        split = self.precision == "high"
        tiling = tiling_of_product(self.rank, split, has_large_tiles(self.device))
        left_out = self._pattern.left_out(tiling)
        right = U if V is None else V
        found = subtract_positive(
            product, U, self.signature, right, self._pattern.order, left_out, tiling,
            weight=self.zero_weight, split=split, counts=split or right is not U,
        )  # fmt: skip
        positive = found.squares.sum(dtype=torch.float64)
        if found.counts is None:
            active = torch.full_like(positive, expected * self.n)
        else:
            active = found.counts.sum(dtype=torch.float64)
        nothing = torch.zeros_like(positive)
        return torch.stack([nothing, nothing, positive, nothing, active, nothing, positive])

    def _sums(self, U: Any, totals: Any) -> Sums:
        gram = _gram(U) * self.signature
        whole = (gram * gram.T).sum()
        # One transfer to the host for all sums.
        *found, squares = torch.cat([totals, whole[None]]).tolist()
        fit, error, positive, free, active, inner, visited = found
        if not math.isfinite(squares):  # some kernels take NaN for zero
            free = math.nan
        # The other zeros have X <= 0: what is left of ||X||^2 is theirs, unless it is only rounding.
        negative = squares - visited
        significant = negative > _ROUNDING * self.eps * squares
        return Sums(fit, error, positive, negative if significant else 0.0, free, active, inner)

    def _sampled(self, U: Any) -> tuple[float, bool]:
        """Return how many zeros of an average row have X > 0, by a sample of rows, and whether no row is zero.

        The first is NaN if U is not finite; a row of subnormal numbers counts as zero.
        """
        rows = self._pattern.sample
        X = self.signed(U[rows]) @ U.T
        positive = (torch.count_nonzero(X > 0) - self._pattern.known_in_sample(X)) / len(rows)
        largest = torch.linalg.vector_norm(U, math.inf, dim=1)
        expected = torch.where(torch.isfinite(largest).all(), positive.to(U.dtype), torch.nan)
        expected, least = torch.stack([expected, largest.min()]).tolist()  # one transfer to the host
        return expected, least >= torch.finfo(U.dtype).tiny

    def _listed(self, U: Any, expected: float, all_scanned: bool = False) -> Any | None:
        """Return the zeros at which X can be positive, as DeviceEntries, or None if there are too many."""
        most = self.n if self.always_lists else min(_MOST_POSITIVE, _LARGEST_SHARE * self.n)
        if not expected <= most:
            return None
        try:
            return self._scanned(U, expected, all_scanned)
        except OutOfResources:
            self._warn_of_large_tiles()
            return None

    def _scanned(self, U: Any, expected: float, all_scanned: bool) -> Any | None:
        from symrelu.kernels.device_lists import Buffer, margin, scan, sorted_pairs, sorting_keys
        from symrelu.kernels.device_rows import ZEROS, DeviceEntries
        from symrelu.kernels.device_scaling import directions, halves
        from symrelu.kernels.device_tilings import has_large_tiles, tiling_of_scan

        tiling = tiling_of_scan(self.rank, has_large_tiles(self.device))
        rows, lengths = directions(U)
        # Rows of zeros, of isolated items for example, have no positive pairs, and would all be candidates.
        items = None if all_scanned else torch.nonzero(lengths)[:, 0]
        scanned = self.n if items is None else len(items)
        if not scanned:
            nothing = torch.zeros(self.n + 1, dtype=torch.int64, device=self.device)
            return DeviceEntries(ZEROS, nothing, torch.empty(0, dtype=torch.int32, device=self.device))
        D = halves(rows if items is None else rows[items], split=False)
        blocks = len(D.high) // tiling.rows
        size = min(max(_LEAST_ROOM, int(_ROOM * expected * tiling.rows)), _MOST_CANDIDATES // blocks)
        buffer = Buffer(torch.full((blocks,), size, device=self.device), size * blocks)
        reach = margin(self.rank)
        scan(D, self.signature, scanned, reach, tiling, buffer)
        largest, total = torch.stack([buffer.counts.max(), buffer.counts.sum()]).tolist()
        if total > _MOST_CANDIDATES:
            return None
        if largest > size:  # the same candidates again, now that their number is known
            buffer = Buffer(buffer.counts.clone(), total)
            scan(D, self.signature, scanned, reach, tiling, buffer)
        found = buffer.found(total)
        del buffer  # sorting takes most of the memory of a list: no more than the keys is held then
        keys = sorting_keys(found, self._pattern.known, self.n, items)
        del found
        return DeviceEntries.of(ZEROS, *sorted_pairs(keys, self.n))


def _gram(U: Any) -> Any:
    """Return U^T U in float64, summed up over parts of the rows, on which a GPU can work at the same time."""
    n, rank = U.shape
    height = min(n, _ROWS_OF_A_GRAM)
    parts = -(-n // height)
    wide = torch.empty((parts * height, rank), dtype=torch.float64, device=U.device)
    wide[:n], wide[n:] = U, 0
    wide = wide.view(parts, height, rank)
    return (wide.mT @ wide).sum(dim=0)


def check_cuda(what: str = "backend='cuda'", instead: str = "backend='auto'") -> None:
    """Raise unless torch can use a GPU. The message says what needs it, and what to use instead."""
    if not torch.cuda.is_available() or torch.version.cuda is None:
        found = "finds no GPU" if torch.version.cuda else "is no build for CUDA"
        raise ValueError(
            f"{what} needs an NVIDIA GPU, and torch {torch.__version__} {found}. Use {instead}, "
            "or install a build of torch for CUDA (pip install 'symrelu[cuda]') and check "
            "torch.cuda.is_available()."
        )
