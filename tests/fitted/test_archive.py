"""Files of solutions: of all models and releases, damaged ones, foreign ones."""

import dataclasses
import json
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from helpers import damaged, refusal
from numpy.testing import assert_array_equal
from solutions import assert_same, with_model

from symrelu import LinkPredictor, Solution, Status, SymReLU, SymReLUClustering, decompose
from symrelu.baselines import SymHALS, symmetric_nmf, three_block_nmd, truncated_eigen
from symrelu.datasets import make_relu_gram
from symrelu.fitted import Linear, SymmetricReLU, TwoFactor
from symrelu.fitted.history import History

DATA = Path(__file__).parents[1] / "data"
EXPECTED = json.loads((DATA / "expected-0.1.0.json").read_text())

MODELS = ("SymmetricReLU", "Linear", "TwoFactor", "Logistic")


def fields_of(path):
    with np.load(path) as content:
        return json.loads(str(content["solution"]))


@pytest.mark.parametrize("name", EXPECTED)
def test_solutions_of_0_1_0_are_read(name):  # issue 11.18
    solution = Solution.load(DATA / f"{name}-0.1.0.npz")
    expected = dict(EXPECTED[name])
    dtype = expected.pop("dtype")
    assert type(solution.model) is {"two_factors": TwoFactor, "linear": Linear}.get(name, SymmetricReLU)
    for factor in ("U", "V", "signature"):
        numbers = expected.pop(factor)
        if numbers is None:
            assert not hasattr(solution, factor)
        else:
            assert_array_equal(getattr(solution, factor), np.array(numbers, dtype), strict=True)
    for column, numbers in expected.pop("history").items():
        kind = np.int64 if column in ("iteration", "evaluations") else np.float64
        assert_array_equal(getattr(solution.history, column), np.array(numbers, kind), strict=True)
    assert solution.status is Status[expected.pop("status")]
    assert solution.model.relu == expected.pop("relu")
    assert {field: getattr(solution, field) for field in expected} == expected


def test_byte_order_of_another_machine(tmp_path, solution):
    path = tmp_path / "fit.npz"
    changed(solution, path, U=solution.U.astype(">f8"), signature=solution.signature.astype(">f8"))
    assert_same(Solution.load(path), solution)


@pytest.mark.parametrize("support", ["equal", "at_least"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_save_and_load(tmp_path, dtype, support):
    M, _ = make_relu_gram(20, 2, random_state=0)
    solution = decompose(M.astype(dtype), 2, support=support, random_state=0, max_iter=20)
    path = tmp_path / "fit.npz"
    solution.save(path)
    loaded = Solution.load(path)
    assert loaded.U.dtype == dtype
    assert loaded.support == support
    assert_same(loaded, solution)
    assert_array_equal(loaded.transform(M[:3]), solution.transform(M[:3]))
    assert [file.name for file in tmp_path.iterdir()] == ["fit.npz"]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_saved(tmp_path, solution, name):
    path = tmp_path / "fit.npz"
    solution = with_model(solution, name)
    solution.save(path)
    assert_same(Solution.load(path), solution)
    with np.load(path) as content:  # the format of 0.1.0
        assert ("V" in content.files) == (name in ("TwoFactor", "Logistic"))
    numbers = fields_of(path)
    assert numbers["version"] == 1
    assert numbers["relu"] == (name in ("SymmetricReLU", "TwoFactor"))
    assert numbers["alpha"] == (0.1 if name == "SymmetricReLU" else 0.0)


def test_a_header_without_support_means_equal(tmp_path, solution):
    """So did all fits of 0.1, which refuses headers with other fields."""
    path = tmp_path / "fit.npz"
    solution.save(path)
    assert "support" not in fields_of(path)
    assert Solution.load(path).support == "equal"
    other = dataclasses.replace(solution, model=dataclasses.replace(solution.model, support="at_least"))
    other.save(path)
    assert fields_of(path)["support"] == "at_least"
    assert_same(Solution.load(path), other)


def test_only_a_fit_that_stopped_before_its_matrix_has_a_level(tmp_path, solution):
    """Files of all other fits can be read by 0.1."""
    path = tmp_path / "fit.npz"
    solution.save(path)
    assert "level" not in fields_of(path)
    assert Solution.load(path).level == 0
    dataclasses.replace(solution, level=2).save(path)
    assert Solution.load(path).level == 2


@pytest.mark.parametrize("name", EXPECTED)
def test_solutions_of_0_1_0_are_written_as_they_were(name, tmp_path):
    old, path = DATA / f"{name}-0.1.0.npz", tmp_path / "fit.npz"
    Solution.load(old).save(path)
    with np.load(old) as before, np.load(path) as after:
        assert before.files == after.files
        assert str(before["solution"]) == str(after["solution"])
        for array in before.files:
            assert_array_equal(before[array], after[array])


def test_infinite_objective_survives_a_file(tmp_path):
    M, _ = make_relu_gram(20, 2, random_state=0)
    solution = decompose(M * 1e200, 2, random_state=0, max_iter=20)
    assert solution.objective == np.inf
    solution.save(tmp_path / "huge.npz")
    assert Solution.load(tmp_path / "huge.npz").objective == np.inf


def test_failed_write_keeps_the_old_file(tmp_path, solution, monkeypatch):
    path = tmp_path / "fit.npz"
    path.write_bytes(b"precious")

    def full_disk(file, **arrays):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="No space left"):
        solution.save(path)
    assert path.read_bytes() == b"precious"
    assert list(tmp_path.iterdir()) == [path]


def test_saved_file_has_ordinary_permissions(tmp_path, solution):
    path = tmp_path / "fit.npz"
    old = os.umask(0o022)
    try:
        solution.save(path)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o644


def test_save_into_a_missing_folder(tmp_path, solution):
    with pytest.raises(FileNotFoundError, match=r"output folder .*nowhere does not exist"):
        solution.save(tmp_path / "nowhere" / "fit.npz")


def changed(solution, path, /, **changes):
    """Write a solution whose JSON or arrays were changed."""
    solution.save(path)
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    numbers = json.loads(str(arrays["solution"]))
    for name, value in changes.items():
        if value is None:
            arrays.pop(name, None)
            numbers.pop(name, None)
        elif isinstance(value, np.ndarray):
            arrays[name] = value
        else:
            numbers[name] = value
    if "solution" not in changes:
        arrays["solution"] = np.array(json.dumps(numbers))
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "its format is not symrelu.Solution"),
        ({"version": 99}, "its version is 99"),
        ({"status": "HAPPY"}, "HAPPY"),
        ({"status": None}, "status"),
        ({"U": None}, "U"),
        ({"history_seconds": None}, "history_seconds"),
        ({"U": np.zeros(3)}, r"U must be a matrix, got shape \(3,\)"),
        ({"U": np.zeros((30, 3))}, "does not match a signature"),
        ({"V": np.zeros((29, 4))}, r"V of shape \(29, 4\) does not match U of shape \(30, 4\)"),
        ({"V": np.zeros(3)}, r"V must be a matrix, got shape \(3,\)"),
        ({"surprise": 1}, "surprise"),
        # issue 11.11
        ({"surprise": np.ones(3)}, "it has an unknown 'surprise'"),
        ({"U": np.full((30, 4), np.nan)}, "U must be finite, got NaN or infinity"),
        ({"U": np.full((30, 4), -np.inf)}, "U must be finite, got NaN or infinity"),
        ({"U": np.full((30, 4), "text")}, "U must hold float32 or float64, got <U4"),
        ({"U": np.ones((30, 4), complex)}, "U must hold float32 or float64, got complex128"),
        ({"U": np.ones((30, 4), int)}, "U must hold float32 or float64, got int64"),
        ({"U": np.ones((30, 0)), "signature": np.ones(0)}, "U must be a matrix, got shape"),
        ({"V": np.full((30, 4), np.nan)}, "V must be finite"),
        ({"signature": np.full(4, 7.0)}, r"signature must be \+1 or -1 for each column, got \[7.0"),
        ({"signature": np.full(4, "+")}, "signature must hold float32 or float64"),
        ({"solution": np.array(3.0)}, "its entry 'solution' is not a string"),
        ({"solution": np.array("3")}, "its entry 'solution' must hold a JSON object, got the type int"),
        ({"solution": np.array("{")}, "its entry 'solution' is not JSON"),
        ({"solution": np.array("[" * 100_000)}, "its entry 'solution' is not JSON"),
        ({"alpha": -1.0}, "alpha must be a finite number >= 0, got -1.0"),
        ({"alpha": "0"}, "alpha must be a finite number >= 0, got '0'"),
        ({"status": 3}, "status must be one of 'TOLERANCE'"),
        ({"n_iter": 1.5}, "n_iter must be an integer"),
        ({"n_iter": True}, "n_iter must be an integer"),
        ({"n_evaluations": -1}, "n_evaluations must be an integer"),
        ({"relative_error": float("nan")}, "relative_error must be a finite number >= 0, got nan"),
        ({"norm": float("nan")}, "norm must be a finite number >= 0, got nan"),
        ({"objective": float("nan")}, "objective must be a number in .*, got nan"),
        ({"objective": [1]}, "objective must be a number"),
        ({"solver": 1}, "solver must be a string, got 1"),
        ({"diagonal": "perhaps"}, "diagonal must be one of 'fit', 'ignore', got 'perhaps'"),
        ({"diagonal": "auto"}, "diagonal must be one of 'fit', 'ignore', got 'auto'"),
        ({"zero_weight": 0}, r"zero_weight must be a number in \(0, 1\], got 0"),
        ({"support": "most"}, "support must be one of 'equal', 'at_least', got 'most'"),
        ({"relu": 1}, "relu must be true or false, got 1"),
        ({"level": -1}, "level must be an integer"),
        ({"level": True}, "level must be an integer"),
        ({"relu": None}, "its header has no 'relu'"),
        # what no fit of the model could have
        ({"relu": False}, "alpha = 0.1 does not match the model Linear"),
        (
            {"relu": False, "alpha": 0.0, "zero_weight": 0.5},
            "zero_weight = 0.5 does not match the model Linear",
        ),
        (
            {"relu": False, "alpha": 0.0, "support": "at_least"},
            "support = at_least does not match the model Linear",
        ),
        ({"V": np.ones((30, 4))}, "alpha = 0.1 does not match the model TwoFactor"),
        ({"V": np.ones((30, 4)), "relu": False}, "alpha = 0.1 does not match the model Logistic"),
        ({"V": np.ones((30, 4)), "alpha": 0.0}, "signature must be all ones for a model with two factors"),
        ({"history_seconds": np.ones(3)}, "its history is not a table"),
        ({"history_seconds": np.ones((11, 1))}, "its history is not a table"),
        ({"history_seconds": np.full(11, np.inf)}, "history_seconds must hold finite numbers >= 0, got inf"),
        ({"history_objective": np.full(11, np.nan)}, "history_objective must hold numbers >= 0, got nan"),
        ({"history_relative_error": np.full(11, "x")}, "history_relative_error must hold float32 or float64"),
        ({"history_iteration": np.arange(11) + 0.5}, "history_iteration must hold whole numbers >= 0, got 0.5"),
        ({"history_iteration": np.arange(11) - 1}, "history_iteration must hold whole numbers >= 0, got -1"),
        ({"history_evaluations": np.full(11, np.nan)}, "history_evaluations must hold whole numbers"),
        ({"history_evaluations": np.full(11, 1e300)}, "history_evaluations must hold whole numbers"),
        ({"history_evaluations": np.full(11, True)}, "history_evaluations must hold integers, got bool"),
    ],
)
def test_foreign_or_damaged_solution_is_refused(tmp_path, solution, changes, message):
    path = tmp_path / "fit.npz"
    changed(solution, path, **changes)
    with pytest.raises(ValueError, match=f"not a Solution this version can read: .*{message}"):
        Solution.load(path)


def test_what_lies_beyond_the_range_of_floats_is_read(tmp_path, solution):
    """What is documented to become infinite, and the gradient of the last step of a fit that diverged."""
    path = tmp_path / "fit.npz"
    beyond = np.full(11, np.inf)
    history = dataclasses.replace(
        solution.history, latent_loss=beyond, objective=beyond, gradient_norm=np.full(11, np.nan)
    )
    huge = dataclasses.replace(solution, history=history, norm=np.inf, objective=np.inf)
    huge.save(path)
    assert_same(Solution.load(path), huge)


def test_every_status_and_an_empty_history_are_read(tmp_path, solution):
    path = tmp_path / "fit.npz"
    for status in Status:
        bare = dataclasses.replace(solution, status=status, history=History.from_records([]))
        bare.save(path)
        assert_same(Solution.load(path), bare)


def test_a_thousand_flipped_bits_and_a_thousand_cuts(tmp_path):
    """Each is refused by name, or changes nothing in the Solution."""
    M, _ = make_relu_gram(6, 2, random_state=0)
    solution = decompose(M, 2, random_state=0, max_iter=3)
    path = tmp_path / "fit.npz"
    solution.save(path)
    harmless = 0
    for content in damaged(path.read_bytes(), flips=1000, cuts=1000):
        path.write_bytes(content)
        message = refusal(Solution.load, path)
        if message is None:
            assert_same(Solution.load(path), solution)
            harmless += 1
        assert message is None or "fit.npz" in message
    assert 0 < harmless < 500  # dates and permissions in the directory of the archive


def test_a_file_does_not_swell(tmp_path, solution):  # issue 11.11
    path = tmp_path / "fit.npz"
    changed(solution, path, U=np.zeros((1_000_000, 4)))
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    np.savez_compressed(path, **arrays)
    del arrays
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    message = refusal(Solution.load, path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert message.endswith(
        "fit.npz must be a Solution file, which is never compressed, got a compressed archive."
    )
    assert peak < 1_000_000


def header_of(shape, descr="<f8"):
    """The first bytes of an array that says it has this shape."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (header_of("(1000000000, 4)") + bytes(64), "takes 32000000000 bytes, got 64"),
        (header_of("(1000000000000, )", "<U0"), "cannot be loaded"),
        (header_of("(-2, -4)") + bytes(64), "cannot be loaded"),
        (header_of("(2, )") + bytes(64), "takes 16 bytes, got 64"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", r"npy version \(1, 0\), got \(2, 0\)"),
        (b"nothing", "magic string"),
    ],
)
def test_what_an_array_says_of_its_size_is_not_believed(tmp_path, solution, content, message):  # issue 11.11
    path = tmp_path / "fit.npz"
    solution.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, content if name == "U.npy" else member)
    with pytest.raises(ValueError, match=f"fit.npz is not a readable npz file .*{message}"):
        Solution.load(path)


def test_an_array_that_the_directory_leaves_out_is_missed(tmp_path, solution):
    """One bit makes an entry of the directory a comment of the one before: V would be gone without a word."""
    path = tmp_path / "fit.npz"
    with_model(solution, "TwoFactor").save(path)
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02", 0, content.rindex(b"PK\x01\x02"))
    content[entry + 32] ^= 64
    path.write_bytes(content)
    with zipfile.ZipFile(path) as archive:
        assert "V.npy" not in archive.namelist()
    with pytest.raises(ValueError, match=r"fit.npz .*the directory does not list all arrays"):
        Solution.load(path)


def test_members_that_share_their_bytes_are_refused(tmp_path):
    """A directory may name the same bytes many times."""
    path = tmp_path / "fit.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", header_of("(1000, )") + bytes(8000))
        for name in "bcdefgh":
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_size = info.file_size = archive.filelist[0].file_size
            info.header_offset = info.CRC = 0
            archive.filelist.append(info)
            archive.NameToInfo[info.filename] = info
    with pytest.raises(ValueError, match=r"fit.npz .*the arrays in the directory are larger than the file"):
        Solution.load(path)


def test_other_files_are_refused(tmp_path, solution):
    path = tmp_path / "fit.npz"
    solution.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="not a readable npz file"):
        Solution.load(path)
    np.savez(path, M=np.eye(2))
    with pytest.raises(ValueError, match="not a saved Solution"):
        Solution.load(path)
    np.save(tmp_path / "array.npy", np.eye(2))
    with pytest.raises(ValueError, match="single npy array"):
        Solution.load(tmp_path / "array.npy")
    with pytest.raises(FileNotFoundError, match=r"The file .* does not exist"):
        Solution.load(tmp_path / "missing.npz")


def test_nothing_is_unpickled(tmp_path, solution):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "exploded"),)

    path = tmp_path / "fit.npz"
    solution.save(path)
    with np.load(path) as content:
        arrays = {name: content[name] for name in content.files}
    arrays["U"] = np.array([Bomb()], dtype=object)
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match="not a readable npz file"):
        Solution.load(path)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    "name", ["SymReLU", "SymReLUClustering", "LinkPredictor", "eigen", "3B-NMD", "SymHALS"]
)
def test_every_solution_that_is_saved_loads(name, tmp_path):
    A = np.zeros((12, 12))
    A[np.arange(12), np.arange(12) - 1] = 1
    A = np.maximum(A, A.T)
    solution = {
        "SymReLU": lambda: SymReLU(3, shrinkage=0.025, random_state=0).fit(A).solution_,
        "SymReLUClustering": lambda: SymReLUClustering(3, random_state=0).fit(A).solution_,
        "LinkPredictor": lambda: LinkPredictor(random_state=0).fit(A).solution_,  # 60 columns, 12 rows
        "eigen": lambda: truncated_eigen(A * 1e300, 3),
        "3B-NMD": lambda: three_block_nmd(A, 2, random_state=0, max_iter=5),
        "SymHALS": lambda: symmetric_nmf(A, 2, SymHALS(), random_state=0, max_iter=5),
    }[name]()
    solution.save(tmp_path / "solution")
    assert_array_equal(Solution.load(tmp_path / "solution").U, solution.U)
