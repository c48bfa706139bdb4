"""Each library's object against the dense matrix it was made of; masks with names of their own."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from graph_sources import (
    EDGES,
    NAMES,
    SOURCES,
    A,
    anndata_graph,
    frame_with,
    labelled_frame,
    networkx_graph,
    pd,
    table_of,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import symrelu.graphs
from symrelu import SymReLU, SymReLUClustering, decompose, metrics, select_rank
from symrelu.baselines import SymHALS, symmetric_nmf, three_block_nmd, truncated_eigen
from symrelu.datasets import Dataset
from symrelu.graphs import Labelled, as_similarity, embedding_frame, from_edges


@pytest.mark.parametrize("name", SOURCES)
def test_values_and_labels(name):
    make, has_labels, is_sparse = SOURCES[name]
    matrix, labels = as_similarity(make())
    assert sparse.issparse(matrix) == is_sparse
    assert isinstance(matrix, sparse.csr_array if is_sparse else np.ndarray)
    assert matrix.dtype == np.float64
    assert_array_equal(matrix.toarray() if is_sparse else matrix, A)
    if has_labels:
        assert labels.dtype == object
        assert labels.tolist() == NAMES
    else:
        assert labels is None


@pytest.mark.parametrize("name", SOURCES)
def test_the_factor_is_that_of_the_plain_matrix(name):
    make, _, is_sparse = SOURCES[name]
    settings = {"rank": 3, "random_state": 0, "max_iter": 20}
    plain = decompose(sparse.csr_array(A) if is_sparse else A, **settings)
    assert_array_equal(decompose(as_similarity(make()).matrix, **settings).U, plain.U)


def test_anything_else_passes_through_unchanged():
    for data in (A, sparse.coo_matrix(A), A.tolist(), "words", None):
        matrix, labels = as_similarity(data)
        assert matrix is data
        assert labels is None


def test_what_is_labelled_already_stays():
    labelled = from_edges(EDGES)
    assert as_similarity(labelled) is labelled
    assert isinstance(labelled, Labelled)


def test_samples_are_not_taken_for_similarities():
    with pytest.raises(TypeError, match=r"the samples of ORL\. .*self_tuning_graph\(dataset\.data\)"):
        SymReLU(2).fit(Dataset(A, np.zeros(len(A)), "ORL"))


def test_labels_that_make_a_frame_look_like_a_graph():
    names = ["get_edgelist", "vcount", "is_directed", "es", "vs"]
    frame = pd.DataFrame(np.eye(5), index=names, columns=names)
    assert all(hasattr(frame, name) for name in names)
    assert as_similarity(frame).labels.tolist() == names


def test_labels_travel_from_the_graph_to_the_table():
    graph = networkx_graph()
    matrix, labels = as_similarity(graph)
    solution = decompose(matrix, 7, diagonal="ignore", n_negative=3, random_state=0)
    X = (solution.U * solution.signature) @ solution.U.T
    frame = embedding_frame(solution.U, labels)
    for i, j, data in graph.edges(data=True):
        if i != j:
            inner = np.sum(frame.loc[i] * solution.signature * frame.loc[j])
            assert_allclose(inner, data["weight"], atol=0.05)
            assert_allclose(inner, X[NAMES.index(i), NAMES.index(j)], atol=1e-12)


# What is loaded


@pytest.mark.parametrize("name", ["adapters", "annotated", "edges", "networks", "tables", "tensors"])
def test_no_library_is_imported(name):
    path = Path(symrelu.graphs.__file__).with_name(f"{name}.py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    foreign = {name.partition(".")[0] for name in modules} - sys.stdlib_module_names
    assert foreign <= {"numpy", "scipy", "symrelu"}


def test_plain_input_loads_nothing():
    program = (
        "import sys, numpy as np; from symrelu.graphs import as_similarity, from_edges;"
        "as_similarity(np.eye(2)); from_edges([('a', 'b', 1.0)]);"
        "print(sorted({'networkx', 'torch', 'anndata', 'igraph'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ast.literal_eval(result.stdout) == []


# What functions take (issue 11.16)


def edge_table():
    return table_of(EDGES)[lambda table: table["weight"] > 0]


FUNCTIONS = {
    "decompose": lambda M, mask: decompose(M, 2, mask=mask, random_state=0, max_iter=30).U,
    "select_rank": lambda M, mask: select_rank(
        M, [1, 2], mask=mask, n_repeats=2, random_state=0, max_iter=20
    ).to_frame(),
    "relative_error": lambda M, mask: metrics.relative_error(M, np.ones((7, 1)), mask=mask),
    "held_out_error": lambda M, mask: metrics.held_out_error(
        M, np.ones((7, 1)), mask=np.eye(7, dtype=bool) if mask is None else mask
    ),
    "parameters_per_pair": lambda M, mask: metrics.parameters_per_pair(M, 2, mask=mask),
    "truncated_eigen": lambda M, mask: truncated_eigen(M, 2).U,
    "symmetric_nmf": lambda M, mask: symmetric_nmf(M, 2, SymHALS(), random_state=0, max_iter=3).U,
    "three_block_nmd": lambda M, mask: three_block_nmd(M, 2, random_state=0, max_iter=3).U,
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("source", SOURCES)
def test_functions_take_what_fit_takes(source, function):
    """Issue 11.16: the same result as of the plain matrix."""
    make, _, is_sparse = SOURCES[source]
    plain = sparse.csr_array(A) if is_sparse else A
    assert_array_equal(FUNCTIONS[function](make(), None), FUNCTIONS[function](plain, None))


def test_an_edge_table_is_a_graph():
    table = edge_table()
    order = list(dict.fromkeys(table[["source", "target"]].to_numpy().ravel()))
    of_table = as_similarity(table)
    expected = pd.DataFrame(A, NAMES, NAMES).loc[order, order].to_numpy()
    assert of_table.labels.tolist() == order
    assert_array_equal(of_table.matrix.toarray(), expected)
    plain = decompose(sparse.csr_array(expected), 2, random_state=0, max_iter=30)
    assert_array_equal(decompose(table, 2, random_state=0, max_iter=30).U, plain.U)
    for model in (SymReLU(2, random_state=0), SymReLUClustering(2, random_state=0)):
        assert model.fit(table).node_names_.tolist() == order
    counted = table.drop(columns="weight")
    assert_array_equal(as_similarity(counted).matrix.toarray(), expected > 0)
    assert_array_equal(as_similarity(table, weight=None).matrix.toarray(), expected > 0)


def test_three_edges_are_no_square_matrix():
    table = table_of([("a", "b", 2.0), ("b", "c", 3.0), ("a", "c", 1.0)])
    assert as_similarity(table).labels.tolist() == ["a", "b", "c"]
    square = frame_with(["source", "target"], ["source", "target"])
    assert as_similarity(square).labels.tolist() == ["source", "target"]


def test_tables_that_may_be_edges_are_refused_with_the_line_to_write():
    table = table_of(EDGES).assign(year=2000)
    message = r"also has \['year'\]. Pass symrelu.graphs.from_edges\(frame\)"
    for call in (decompose, metrics.parameters_per_pair, SymReLU(2).fit, SymReLUClustering(2).fit):
        with pytest.raises(ValueError, match=message):
            call(table, 2) if call in (decompose, metrics.parameters_per_pair) else call(table)
    other_names = pd.DataFrame(EDGES, columns=["from", "to", "weight"])
    with pytest.raises(ValueError, match=r"from_edges\(frame\)"):
        decompose(other_names, 2)
    with pytest.raises(ValueError, match=r"for a list of edges, pass symrelu.graphs.from_edges\(M\).matrix"):
        decompose([(0, 1), (1, 2), (0, 2)], 2)


class Slow:
    """An object that NumPy would ask for its items one by one."""

    def __len__(self):
        return 10**9

    def __getitem__(self, k):
        raise AssertionError("asked for an item")


def test_foreign_objects_are_not_taken_apart():
    for call in (lambda M: decompose(M, 2), select_rank, lambda M: metrics.relative_error(M, [[1.0]])):
        with pytest.raises(TypeError, match=r"M must be an array, .*as_similarity reads, got Slow"):
            call(Slow())
    for model in (SymReLU(2), SymReLU(2, affinity="self_tuning")):
        with pytest.raises(TypeError, match=r"X must be an array, .*as_similarity reads, got Slow"):
            model.fit(Slow())
    adata = anndata_graph()
    solution = decompose(adata, 2, random_state=0, max_iter=5)
    with pytest.raises(TypeError, match=r"got an AnnData. Pass symrelu.graphs.from_anndata\(adata\).matrix"):
        solution.transform(adata)
    with pytest.raises(TypeError, match="got an AnnData"):
        SymReLU(2, affinity="self_tuning").fit(adata)


# Masks with names of their own (issue 11.16)

HIDDEN = np.zeros(A.shape, bool)
HIDDEN[0, 1:4] = HIDDEN[1:4, 0] = HIDDEN[5, 5] = True
SHUFFLED = sorted(NAMES)


def mask_frame(rows=NAMES, columns=NAMES, dtype=bool):
    return pd.DataFrame(HIDDEN, NAMES, NAMES).loc[rows, columns].astype(dtype)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", [bool, "boolean"])
@pytest.mark.parametrize("columns", [NAMES, SHUFFLED])
@pytest.mark.parametrize("rows", [NAMES, SHUFFLED])
def test_a_mask_is_brought_into_the_order_of_the_matrix(rows, columns, dtype):
    mask = mask_frame(rows, columns, dtype)
    expected = decompose(A, 2, mask=HIDDEN, random_state=0, max_iter=30)
    frame = labelled_frame()
    assert_array_equal(decompose(frame, 2, mask=mask, random_state=0, max_iter=30).U, expected.U)
    fitted = SymReLU(2, max_iter=30, random_state=0).fit(frame, mask=mask)
    plain = SymReLU(2, max_iter=30, random_state=0).fit(A, mask=HIDDEN)
    assert_array_equal(fitted.embedding_, plain.embedding_)
    error = metrics.held_out_error(frame, expected.U, mask=mask)
    assert error == metrics.held_out_error(A, expected.U, mask=HIDDEN)
    with_unknown = frame.mask(mask_frame(), np.nan)  # NaN there, as missing numbers of a table are
    assert_array_equal(decompose(with_unknown, 2, mask=mask, random_state=0, max_iter=30).U, expected.U)


def test_masks_that_do_not_fit_are_refused():
    frame = labelled_frame()
    renamed = mask_frame().rename(index={"a": "x"}, columns={"a": "x"})
    with pytest.raises(ValueError, match=r"mask must have the labels of the matrix, each once; .* in 'a'"):
        decompose(frame, 2, mask=renamed)
    with pytest.raises(ValueError, match="mask must have the labels of the matrix"):
        decompose(frame, 2, mask=mask_frame().iloc[:5, :5])
    with pytest.raises(ValueError, match="rows and columns in the same order if the matrix has no labels"):
        decompose(A, 2, mask=mask_frame(columns=SHUFFLED))
    with pytest.raises(TypeError, match="mask must be boolean"):
        decompose(frame, 2, mask=mask_frame(dtype=float))
    unnamed = mask_frame().set_axis(range(7)).set_axis(range(7), axis=1)
    for matrix, mask in ((frame, unnamed.reset_index(drop=True).T.reset_index(drop=True)), (A, mask_frame())):
        fitted = decompose(matrix, 2, mask=mask, random_state=0, max_iter=5)
        assert_array_equal(fitted.U, decompose(A, 2, mask=HIDDEN, random_state=0, max_iter=5).U)


def test_a_tensor_is_a_mask_too():
    torch = pytest.importorskip("torch")
    expected = decompose(A, 2, mask=HIDDEN, random_state=0, max_iter=5).U
    for mask in (torch.tensor(HIDDEN), torch.tensor(HIDDEN).to_sparse()):
        assert_array_equal(decompose(A, 2, mask=mask, random_state=0, max_iter=5).U, expected)


def test_a_mask_of_new_rows_is_brought_into_the_order_of_the_items():
    frame = labelled_frame()
    new, hidden = frame.iloc[:3], mask_frame().iloc[:3]
    for fitted in (frame, frame.set_axis(range(1, 8)).set_axis(range(1, 8), axis=1)):
        model = SymReLU(2, shrinkage=0.02, random_state=0).fit(fitted)
        rows = new.set_axis(fitted.columns, axis=1)
        mask = hidden.set_axis(fitted.columns, axis=1)
        expected = model.transform(rows, HIDDEN[:3])
        for given_mask in (mask, mask[mask.columns[::-1]]):
            assert_array_equal(model.transform(rows, given_mask), expected)
            assert model.score(rows, mask=given_mask) == model.score(rows, mask=HIDDEN[:3])
        with pytest.raises(ValueError, match="mask must have the rows of X in the same order"):
            model.transform(rows, mask.iloc[::-1])
        with pytest.raises(ValueError, match="mask must have a column for each of the 7 fitted items, got 6"):
            model.transform(rows, mask.iloc[:, :6])


def test_a_mask_that_counts_its_items_in_another_order_is_aligned():
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((20, 3))
    M = np.maximum(0, factor @ factor.T)
    mask = np.triu(rng.random((20, 20)) < 0.2, 1)
    mask, order = pd.DataFrame(mask | mask.T), rng.permutation(20)
    for matrix in (M, pd.DataFrame(M)):
        expected = decompose(matrix, 2, mask=mask, random_state=0, max_iter=20).U
        assert_array_equal(
            decompose(matrix, 2, mask=mask.iloc[order, order], random_state=0, max_iter=20).U, expected
        )


def test_a_mask_with_missing_values_is_refused():
    mask = pd.DataFrame(np.zeros((3, 3), bool)).astype("boolean")
    mask.iloc[0, 1] = pd.NA
    with pytest.raises(ValueError, match=r"mask must be True or False everywhere, .*mask.fillna\(True\)"):
        decompose(np.ones((3, 3)), 1, mask=mask)
