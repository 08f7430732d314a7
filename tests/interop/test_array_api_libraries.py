"""SciPy and scikit-learn with their array API switches take arrays of ours and answer with such.

SciPy reads its switch when it is imported, so each library runs in a process of its own.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import pyarray as pa

COMMON = """
import numpy as np, pyarray as pa
rng = np.random.default_rng(0)
X, V = rng.random((50, 4)), rng.random(64)
Y = X @ np.array([1.0, 2.0, 3.0, 4.0])
CLASS = (Y > Y.mean()).astype(np.int64)
def check(name, function, *arrays):
    ours, theirs = function(*map(pa.asarray, arrays)), function(*arrays)
    if isinstance(theirs, np.ndarray):
        assert isinstance(ours, pa.ndarray), (name, type(ours))
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-9, atol=1e-12, err_msg=name)
    print(name)
"""
SCIPY = """
from scipy import cluster, fft, ndimage, signal, special, stats
check("stats.zscore", stats.zscore, X)
check("stats.skew", stats.skew, X)
check("stats.pearsonr", lambda x, y: stats.pearsonr(x, y).statistic, Y, Y * Y)
check("special.logsumexp", lambda x: special.logsumexp(x, axis=0), X)
check("special.softmax", lambda x: special.softmax(x, axis=1), X)
check("fft.rfft", fft.rfft, V)
check("signal.detrend", signal.detrend, V)
check("cluster.vq.whiten", cluster.vq.whiten, X)
"""
SKLEARN = """
import sklearn
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import MinMaxScaler, StandardScaler
with sklearn.config_context(array_api_dispatch=True):
    check("StandardScaler", lambda x: StandardScaler().fit_transform(x), X)
    check("MinMaxScaler", lambda x: MinMaxScaler().fit_transform(x), X)
    check("PCA", lambda x: abs(PCA(2, svd_solver="full").fit_transform(x)), X)
    check("Ridge", lambda x, y: Ridge(solver="svd").fit(x, y).predict(x), X, Y)
    check("LDA", lambda x, c: LinearDiscriminantAnalysis().fit(x, c).predict(x), X, CLASS)
    check("r2_score", r2_score, Y, Y * 1.1)
    check("accuracy_score", accuracy_score, CLASS, CLASS[::-1].copy())
    check("cosine_similarity", cosine_similarity, X)
"""


@pytest.mark.parametrize(
    ("needs", "program"), [(("scipy",), SCIPY), (("scipy", "sklearn", "array_api_compat"), SKLEARN)]
)
@pytest.mark.slow
def test_arrays_go_in_and_come_out(needs, program):
    for module in needs:
        pytest.importorskip(module)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", COMMON + program],
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.split()) == 8


def test_sparse_matrices_of_scipy():
    sparse = pytest.importorskip("scipy.sparse")
    a = pa.asarray([1.0, 2.0, 3.0])
    for matrix in (sparse.eye(3), sparse.csr_matrix(np.eye(3))):
        assert (matrix @ a).tolist() == [1, 2, 3]
        assert (matrix @ pa.ones((3, 2))).tolist() == np.ones((3, 2)).tolist()
