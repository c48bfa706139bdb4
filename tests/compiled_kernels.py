"""Compile the kernels for GPUs for an H200, which needs none: python tests/compiled_kernels.py

The interpreter, in which tests run them without a GPU, takes programs that the compiler refuses. It prints the
name of each kernel, the bytes of registers that had to go to memory instead, and the bytes that it takes of the
memory of a multiprocessor.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.pop("TRITON_INTERPRET", None)  # read when a kernel is defined

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from symrelu.kernels import device_lists, device_products, device_rows, device_scaling
from symrelu.kernels.device_tilings import tiling_of_product

RANK = 64
ONE_WARP, FOUR_WARPS = {"num_warps": 1}, {"num_warps": 4}
LISTED = ("support", "zeros", "unknown")
# Arguments that are arrays of another type than float32, or no arrays.
TYPES = {
    **dict.fromkeys(("A", "B", "high", "low"), "*fp16"),
    **dict.fromkeys((f"{name}_{half}" for name in "ABV" for half in ("high", "low")), "*fp16"),
    **dict.fromkeys(("order", "owners", "first", "places", "offsets"), "*i64"),
    **dict.fromkeys((f"{kind}_{end}" for kind in LISTED for end in ("begins", "ends")), "*i64"),
    **dict.fromkeys((*LISTED, "counts"), "*i32"),
    **dict.fromkeys(("tiles", "first_tile", "first_entry", "entry_rows", "entry_columns"), "*i32"),
    **dict.fromkeys(("n", "rank", "columns", "rows"), "i32"),
    **dict.fromkeys(("weight", "one", "threshold"), "fp32"),
}  # fmt: skip
SIZES = {"RANK": RANK, "COLUMNS": RANK}
CHUNK = device_rows.entries_at_once(RANK)
ROWS = {**SIZES, "CHUNK": CHUNK, "LONGEST": 1024, "DOUBLE": False, "MULTIPLIES": True, "AT_LEAST": True}
# The widest factors that are tested, in the type that takes the most registers.
WIDE = {"RANK": 512, "COLUMNS": 512, "CHUNK": device_rows.entries_at_once(512), "DOUBLE": True}
DOUBLES = dict.fromkeys(("U", "V", "signs", "weights", "values", "out"), "*fp64")
LISTS = {"OWNERS": True, "PIECES": False, "SUPPORT": True, "ZEROS": True, "UNKNOWN": True}
SCALED = {**SIZES, "ROWS": 64, "SPLIT": True, "SUBTRACTS": True, "SUMS": True}
SUMMED = {"sums": "*fp64"}
# In place of lists that are not given, a pass hands over the sums; without a product, it hands over U for V.
ABSENT = {f"{name}{end}": "*fp64" for name in LISTED[1:] for end in ("", "_begins", "_ends")}
NO_LISTS = {"OWNERS": False, "ZEROS": False, "UNKNOWN": False}


def product(rank, split, columns=None, **others):
    """Return a product with the stored tiles, for V with the columns of U or others."""
    tiling = tiling_of_product(rank, split)
    width = tiling.columns // tiling.pieces
    slab = device_products.columns_at_once(rank, columns or rank)
    constants = {
        **{"RANK": rank, "SLAB": slab, "ROWS": tiling.rows, "COLUMNS": tiling.columns, "WIDTH": width},
        **{"DESCRIBED": tiling.described, "SPLIT": split, "SUMS": split, "AT_ONCE": not split},
        **others,
    }
    described = {"B_high": f"tensordesc<fp16[{width},{rank}]>", "V_high": f"tensordesc<fp16[{width},{slab}]>"}
    options = {"num_warps": tiling.warps, "num_stages": tiling.stages}
    if tiling.registers and not constants["SUMS"]:
        options["maxnreg"] = tiling.registers
    return device_products._add_positive, constants, described if tiling.described else {}, options


KERNELS = [
    (device_rows._sum_entries, {**ROWS, **LISTS}, SUMMED, ONE_WARP),
    (
        device_rows._sum_entries,
        {**ROWS, **LISTS, **NO_LISTS},
        {**SUMMED, **ABSENT, "owners": "*fp64"},
        ONE_WARP,
    ),
    (
        device_rows._sum_entries,
        {**ROWS, **LISTS, "PIECES": True, "MULTIPLIES": False},
        {**SUMMED, "out": "*fp64"},
        ONE_WARP,
    ),
    (device_rows._sum_entries, {**ROWS, **LISTS, **WIDE}, {**SUMMED, **DOUBLES}, ONE_WARP),
    (device_rows._add_parts, SIZES, {"rows": "*i64"}, ONE_WARP),
    (device_scaling._write_directions, SCALED, {}, FOUR_WARPS),
    (device_scaling._write_right, SCALED, {}, FOUR_WARPS),
    (device_scaling._subtract_scaled, SCALED, {"sums": "*fp64"}, FOUR_WARPS),
    (device_scaling._subtract_scaled, {**SCALED, "SUBTRACTS": False}, {"sums": "*fp64"}, FOUR_WARPS),
    (device_scaling._write_right, {**SCALED, "SPLIT": False}, {}, FOUR_WARPS),
    *(product(rank, split) for rank in (16, 32, 64, 128) for split in (False, True)),
    # AAPB has twice as many columns in V as in U.
    *(product(rank, True, 2 * rank) for rank in (32, 64)),
    product(RANK, False, 2 * RANK, SUMS=True, AT_ONCE=False),
    (device_lists._list_candidates, {"RANK": RANK, "ROWS": 64, "COLUMNS": 128}, {}, FOUR_WARPS),
]


def compiled(kernel, constants, types, options):
    """Return a kernel as the compiler for a GPU leaves it to the assembler."""
    names = kernel.arg_names
    values = {(place,): constants[name] for place, name in enumerate(names) if name in constants}
    types = {name: types.get(name, TYPES.get(name, "*fp32")) for name in names}
    signature = {name: "constexpr" if name in constants else types[name] for name in names}
    # As at a call: arrays and their sizes are divisible by 16, without which no loads run ahead.
    divisible = {
        (place,): [["tt.divisibility", 16]]
        for place, name in enumerate(names)
        if signature[name].startswith("*") or name in ("rows", "columns")
    }
    source = ASTSource(kernel, signature, values, divisible)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)


def spilled(made):
    """Return how many bytes of registers a kernel stores in memory."""
    assembler = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "kernel.ptx")
        source.write_text(made.asm["ptx"], encoding="utf-8")
        command = [assembler, "-v", "--gpu-name=sm_90a", source, "-o", Path(folder, "kernel")]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return int(re.search(r"(\d+) bytes spill stores", said)[1])


if __name__ == "__main__":
    for kernel, *settings in KERNELS:
        made = compiled(kernel, *settings)
        sys.stdout.write(f"{kernel.__name__} {spilled(made)} {made.metadata.shared}\n")
