"""The published data: a table of the sets and the graphs, and where their files are found."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

VARIABLE = "SYMRELU_DATA"
_CAI = "http://www.cad.zju.edu.cn/home/dengcai/Data/data.html"
_PLANETOID = "https://github.com/kimiyoung/planetoid"


@dataclass(frozen=True)
class Source:
    """Where a set is found, and what it must be."""

    name: str  # what to print: it says so where a set is not the original one
    npz: str
    sha256: str  # of the npz file; empty where none is known
    shape: tuple[int, int]
    classes: int
    mat: tuple[str, ...] = ()  # names of the original file; no SHA-256 is asked of it
    page: str = _CAI  # where it is published

    @property
    def files(self) -> tuple[str, ...]:
        """Names the file may have; there is no npz file without a known SHA-256."""
        return (*self.mat, self.npz) if self.sha256 else self.mat


# The paper's name of a set of samples -> its sources, the preferred one first.
SAMPLES: dict[str, tuple[Source, ...]] = {
    "ORL": (
        Source(
            "ORL",
            npz="ORL.npz",
            sha256="423f6885a690217c34813f430f4b3de977804e6e54381106d0d9629f2fed805d",
            shape=(400, 4096),
            classes=40,
            mat=("ORL_64x64.mat", "ORL64.mat"),
        ),
    ),
    "YaleB": (
        Source(
            "YaleB",
            npz="YaleB.npz",
            sha256="fe9aceb9e3772aaa4a0562633c66e834000b6172d6d24da75308bfbed7b41c64",
            shape=(2414, 1024),
            classes=38,
            mat=("YaleB_32x32.mat", "YaleB.mat"),
        ),
    ),
    "COIL20": (
        Source(
            "COIL20",
            npz="COIL20.npz",
            sha256="620ddd72c6cb1dde4371a73383cbe6a56d947e32ce9d75bea7cdd943100486d7",
            shape=(1440, 1024),
            classes=20,
            mat=("COIL20.mat",),
        ),
    ),
    "COIL100": (
        Source(
            "COIL100",
            npz="COIL100.npz",
            sha256="",
            shape=(7200, 1024),
            classes=100,
            mat=("COIL100.mat",),
        ),
        Source(
            "COIL100 (reconstruction, 7178 of 7200 images)",
            npz="COIL100_7178.npz",
            sha256="34437e17aa322e87c56cae10baf764d668ce336a1b1a66cdffc5bf7faeae9e10",
            shape=(7178, 1024),
            classes=100,
        ),
    ),
    "PIE": (
        Source(
            "PIE",
            npz="PIE.npz",
            sha256="5e48d41a398a53b2513ae6ab1bbb979e984018c715d79d50101e51d0249d9009",
            shape=(2856, 1024),
            classes=68,
            mat=("PIE_pose27.mat", "PIE.mat"),
        ),
    ),
    "TDT2": (
        Source(
            "TDT2",
            npz="TDT2.npz",
            sha256="6af06655482296a038b60c706619385bc7902079b66d956e528a957b23b14e6a",
            shape=(9394, 36771),
            classes=30,
            mat=("TDT2.mat",),
        ),
    ),
}
# The name of a graph -> its sources.
GRAPHS: dict[str, tuple[Source, ...]] = {
    "cora": (
        Source(
            "cora",
            npz="graph_cora.npz",
            sha256="e6de8d875b90a57996694e26d8055dc9ae844e4ff6bb25ad6eff0d39794e1ee2",
            shape=(2708, 2708),
            classes=7,
            page=_PLANETOID,
        ),
    ),
    "pubmed": (
        Source(
            "pubmed",
            npz="graph_pubmed.npz",
            sha256="b232a94ca74089461e8929b24e8d7fd2eb8dc78263a322ba102979f180558012",
            shape=(19717, 19717),
            classes=3,
            page=_PLANETOID,
        ),
    ),
    "polblogs": (
        Source(
            "polblogs",
            npz="graph_polblogs.npz",
            sha256="5b73f5202a5173f0c772dc8275fcad7104dd83bc0180578e60834eb890843601",
            shape=(1490, 1490),
            classes=2,
            page="https://github.com/danielzuegner/nettack",
        ),
    ),
    "email-Eu-core": (
        Source(
            "email-Eu-core",
            npz="graph_email_eu_core.npz",
            sha256="f96b8384206f50c622a5b397b7c5cefa2e501c82235ea940774f389a9d8c8e6b",
            shape=(1005, 1005),
            classes=42,
            page="https://snap.stanford.edu/data/email-Eu-core.html",
        ),
    ),
}


def locate(sources: tuple[Source, ...], data_home: str | PathLike[str] | None) -> tuple[Source, Path]:
    """Return the first file that is there; MATLAB files come before npz files."""
    folder = _folder(data_home, sources)
    for source in sources:
        for name in source.files:
            if (folder / name).exists():
                return source, folder / name
    raise _missing(sources, folder)


def _folder(data_home: str | PathLike[str] | None, sources: tuple[Source, ...]) -> Path:
    given = data_home if data_home is not None else os.environ.get(VARIABLE)
    if not given:
        raise FileNotFoundError(
            f"{sources[0].name} needs a data directory: pass data_home=, or set the environment variable "
            f"{VARIABLE} to the folder that holds {_files(sources)}. It is published at {sources[0].page}."
        )
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"The data directory {folder} does not exist.")
    return folder


def _files(sources: tuple[Source, ...]) -> str:
    return " or ".join(name for source in sources for name in source.files)


def _missing(sources: tuple[Source, ...], folder: Path) -> FileNotFoundError:
    return FileNotFoundError(
        f"{sources[0].name} was not found: put {_files(sources)} into {folder}. "
        f"It is published at {sources[0].page}."
    )


def checked_sha256(path: Path, source: Source) -> str:
    """Return the SHA-256 of a file; that of an npz file must be the known one."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if path.suffix == ".npz" and digest != source.sha256:
        raise ValueError(
            f"{path} is not the file it should be: its SHA-256 is {digest}, expected {source.sha256}. "
            "Copy it again."
        )
    return digest
