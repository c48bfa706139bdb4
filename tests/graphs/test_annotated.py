"""AnnData objects, read and written."""

import warnings

import numpy as np
import pytest
from graph_sources import NAMES, A, anndata_graph
from numpy.testing import assert_array_equal
from scipy import sparse

import symrelu.graphs
from symrelu import SymReLU
from symrelu.graphs import as_similarity, embedding_frame, from_anndata, write_anndata


def test_anndata_takes_the_graph_that_neighbors_names():
    adata = anndata_graph(np.eye(len(NAMES)), neighbors={"connectivities_key": "mine"})
    adata.obsp["mine"] = sparse.csr_matrix(A.astype(np.float32))
    matrix, labels = as_similarity(adata)
    assert_array_equal(matrix.toarray(), A)
    assert matrix.dtype == np.float32
    assert labels.tolist() == NAMES
    assert_array_equal(from_anndata(adata, key="connectivities").matrix, np.eye(len(NAMES)))
    assert_array_equal(from_anndata(anndata_graph(neighbors={"params": {}})).matrix.toarray(), A)


def test_anndata_without_a_graph():
    adata = anndata_graph()
    adata.obsp["distances"] = adata.obsp["connectivities"]
    message = r"obsp must hold the graph 'other'; its entries are: 'connectivities', 'distances'. Run scanpy.pp"
    with pytest.raises(ValueError, match=message):
        from_anndata(adata, key="other")
    adata.obsp.clear()
    with pytest.raises(ValueError, match="must hold the graph 'connectivities'; its entries are: none"):
        as_similarity(adata)
    with pytest.raises(TypeError, match="adata must be an AnnData, got ndarray"):
        from_anndata(A)


def test_anndata_and_back(tmp_path):
    anndata = pytest.importorskip("anndata")
    adata = anndata_graph()
    model = SymReLU(3, n_negative=1, random_state=0, solver="aapb", max_iter=3, tol=0.25)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few steps are no convergence
        model.fit(from_anndata(adata).matrix)
    write_anndata(adata, model.embedding_, signature=model.signature_, params=model.get_params())
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert_array_equal(again.obsm["X_symrelu"], model.embedding_)
    assert_array_equal(again.uns["symrelu"]["signature"], [1, 1, -1])
    params = again.uns["symrelu"]["params"]
    assert (params["n_components"], params["solver"], params["tol"]) == (3, "aapb", 0.25)
    assert "max_time" not in params  # it is None
    write_anndata(again, model.embedding_ + 1)  # its own entry may be replaced, also one that was read
    assert_array_equal(again.obsm["X_symrelu"], model.embedding_ + 1)
    assert "signature" not in again.uns["symrelu"]


def test_settings_that_no_file_holds_are_kept_as_they_print():
    adata = anndata_graph()
    params = {"solver": symrelu.AAPB(), "shape": (1, 2), "seed": np.int64(3), "init": np.ones(2), "n": None}
    write_anndata(adata, A[:, :2], "X_mine", params=params)
    kept = adata.uns["mine"]["params"]
    assert kept["solver"] == repr(symrelu.AAPB())
    assert kept["shape"] == "(1, 2)"
    assert kept["seed"] == 3
    assert_array_equal(kept["init"], [1, 1])
    assert "n" not in kept


def test_frames_are_written_only_where_their_labels_fit():
    adata = anndata_graph()
    U = A[:, :2]
    write_anndata(adata, embedding_frame(U, NAMES))
    assert_array_equal(adata.obsm["X_symrelu"], U)
    write_anndata(adata, embedding_frame(U + 1, None))
    assert_array_equal(adata.obsm["X_symrelu"], U + 1)
    with pytest.raises(ValueError, match=r"index of embedding must be adata.obs_names, in the same order"):
        write_anndata(adata, embedding_frame(U, NAMES[::-1]))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((A[:-1],), ValueError, "one row for each of the 7 observations, got 6 rows"),
        ((A[0],), ValueError, r"embedding must have shape \(n, n_components\), got \(7,\)"),
        ((A, "X_symrelu", [1, 1]), ValueError, r"one sign for each of the 7 columns .* got shape \(2,\)"),
        ((A, "X_neighbors"), ValueError, r"uns\['neighbors'\] belongs to another tool .* another key_added"),
    ],
)
def test_nothing_is_written_if_something_is_wrong(arguments, error, message):
    adata = anndata_graph(neighbors={"params": {"method": "umap"}})
    with pytest.raises(error, match=message):
        write_anndata(adata, *arguments)
    assert not adata.obsm
    assert list(adata.uns) == ["neighbors"]
    with pytest.raises(TypeError, match="adata must be an AnnData, got dict"):
        write_anndata({}, A)
