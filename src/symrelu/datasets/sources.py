"""The published data: a table of the sets and graphs, and the search for their files."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

VARIABLE = "SYMRELU_DATA"
_CAI = "http://www.cad.zju.edu.cn/home/dengcai/Data/data.html"
_PLANETOID = "https://github.com/kimiyoung/planetoid"
_NETTACK = "https://github.com/danielzuegner/nettack"
_SNAP = "https://snap.stanford.edu/data/email-Eu-core.html"
_SEAL = "https://github.com/muhanzhang/SEAL"


# File -> SHA-256, checked on load. COIL100.npz is absent: its compact form exists as a reconstruction only.
_SHA256 = {
    "ORL.npz": "423f6885a690217c34813f430f4b3de977804e6e54381106d0d9629f2fed805d",
    "YaleB.npz": "fe9aceb9e3772aaa4a0562633c66e834000b6172d6d24da75308bfbed7b41c64",
    "COIL20.npz": "620ddd72c6cb1dde4371a73383cbe6a56d947e32ce9d75bea7cdd943100486d7",
    "COIL100_7178.npz": "34437e17aa322e87c56cae10baf764d668ce336a1b1a66cdffc5bf7faeae9e10",
    "PIE.npz": "5e48d41a398a53b2513ae6ab1bbb979e984018c715d79d50101e51d0249d9009",
    "TDT2.npz": "6af06655482296a038b60c706619385bc7902079b66d956e528a957b23b14e6a",
    "graph_cora.npz": "e6de8d875b90a57996694e26d8055dc9ae844e4ff6bb25ad6eff0d39794e1ee2",
    "graph_pubmed.npz": "b232a94ca74089461e8929b24e8d7fd2eb8dc78263a322ba102979f180558012",
    "graph_polblogs.npz": "5b73f5202a5173f0c772dc8275fcad7104dd83bc0180578e60834eb890843601",
    "graph_email_eu_core.npz": "f96b8384206f50c622a5b397b7c5cefa2e501c82235ea940774f389a9d8c8e6b",
    "graph_celegans.npz": "b6bceb9ebcb96f2b138d9a8ae39471b0aa325634388bebc39c10038c4f1aec5f",
    "graph_usair.npz": "b08302771be2d712455358a2fd92009a95a7bc3cc7f63209decc99ffdc3e3df1",
    "graph_ecoli.npz": "07efcadd15a30fe947a958a15540e1e796a8701b840fa1519a257415096d9d14",
    "graph_ppi.npz": "4eecef979174140445521abb333453ac02209711bbbf1770f46ee5a9b1c77c36",
}


@dataclass(frozen=True)
class Source:
    """One published version of a data set: its files, and what they must contain."""

    name: str  # printed in messages and tables; it says so if a set is not the original one
    npz: str
    sha256: str  # of the npz file; empty if there is no such file
    shape: tuple[int, int]
    classes: int  # 0 if the file has no labels
    mat: tuple[str, ...] = ()  # possible names of the original file, checked by shape and classes only
    page: str = _CAI  # where it is published

    @property
    def files(self) -> tuple[str, ...]:
        """Names that the file may have. An npz file counts only if its SHA-256 is known."""
        return (*self.mat, self.npz) if self.sha256 else self.mat


def _samples(name: str, npz: str, shape: tuple[int, int], classes: int, *mat: str) -> Source:
    return Source(name, npz, _SHA256.get(npz, ""), shape, classes, mat)


def _graph(name: str, npz: str, n_nodes: int, classes: int, page: str) -> Source:
    return Source(name, npz, _SHA256[npz], (n_nodes, n_nodes), classes, page=page)


# Name in the paper -> its sources, the preferred one first.
SAMPLES: dict[str, tuple[Source, ...]] = {
    "ORL": (_samples("ORL", "ORL.npz", (400, 4096), 40, "ORL_64x64.mat", "ORL64.mat"),),
    "YaleB": (_samples("YaleB", "YaleB.npz", (2414, 1024), 38, "YaleB_32x32.mat", "YaleB.mat"),),
    "COIL20": (_samples("COIL20", "COIL20.npz", (1440, 1024), 20, "COIL20.mat"),),
    "COIL100": (
        _samples("COIL100", "COIL100.npz", (7200, 1024), 100, "COIL100.mat"),
        _samples("COIL100 (reconstruction, 7178 of 7200 images)", "COIL100_7178.npz", (7178, 1024), 100),
    ),
    "PIE": (_samples("PIE", "PIE.npz", (2856, 1024), 68, "PIE_pose27.mat", "PIE.mat"),),
    "TDT2": (_samples("TDT2", "TDT2.npz", (9394, 36771), 30, "TDT2.mat"),),
}
GRAPHS: dict[str, tuple[Source, ...]] = {
    "cora": (_graph("cora", "graph_cora.npz", 2708, 7, _PLANETOID),),
    "pubmed": (_graph("pubmed", "graph_pubmed.npz", 19717, 3, _PLANETOID),),
    "polblogs": (_graph("polblogs", "graph_polblogs.npz", 1490, 2, _NETTACK),),
    "email-Eu-core": (_graph("email-Eu-core", "graph_email_eu_core.npz", 1005, 42, _SNAP),),
    "celegans": (_graph("celegans", "graph_celegans.npz", 297, 0, _SEAL),),
    "usair": (_graph("usair", "graph_usair.npz", 332, 0, _SEAL),),
    "ecoli": (_graph("ecoli", "graph_ecoli.npz", 1805, 0, _SEAL),),
    "ppi": (_graph("ppi", "graph_ppi.npz", 3890, 0, _SEAL),),
}


def locate(sources: tuple[Source, ...], data_home: str | PathLike[str] | None) -> tuple[Source, Path]:
    """Return the first file that exists; MATLAB files take precedence over npz files."""
    folder = _data_folder(data_home, sources)
    for source in sources:
        for name in source.files:
            if (folder / name).exists():
                return source, folder / name
    raise _not_found_error(sources, folder)


def _data_folder(data_home: str | PathLike[str] | None, sources: tuple[Source, ...]) -> Path:
    given = data_home if data_home is not None else os.environ.get(VARIABLE)
    if not given:
        raise FileNotFoundError(
            f"{sources[0].name} needs a data directory: pass data_home=, or set the environment variable "
            f"{VARIABLE} to the folder that holds {_file_names(sources)}. It is published at {sources[0].page}."
        )
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"The data directory {folder} does not exist. Check data_home= or {VARIABLE}.")
    return folder


def _file_names(sources: tuple[Source, ...]) -> str:
    return " or ".join(name for source in sources for name in source.files)


def _not_found_error(sources: tuple[Source, ...], folder: Path) -> FileNotFoundError:
    return FileNotFoundError(
        f"{sources[0].name} was not found: put {_file_names(sources)} into {folder}. "
        f"It is published at {sources[0].page}."
    )


def checked_sha256(path: Path, source: Source) -> str:
    """Return the SHA-256 of a file, or raise if an npz file does not have the listed one."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if path.suffix == ".npz" and digest != source.sha256:
        raise ValueError(
            f"{path} must have the SHA-256 {source.sha256}, got {digest}. It is damaged or another version: "
            "copy it again."
        )
    return digest
