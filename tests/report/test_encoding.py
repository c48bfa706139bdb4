import base64
import json

import numpy as np
import pytest
import report_pages
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from symrelu.report.encoding import base64_text, json_text, levels, quantised, varints, zigzag


@given(st.lists(st.text() | st.sampled_from(["</script>", "<!--", "]]>", "\u2028", "&lt;", "\udcff"])))
def test_json_keeps_every_text_and_has_no_markup(texts):
    text = json_text({"names": texts})
    assert json.loads(text) == {"names": texts}
    assert not set(text) & set("<>&\u2028\u2029")
    text.encode()  # a surrogate would raise


def test_json_refuses_what_javascript_cannot_read():
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text([float("nan")])


@given(st.lists(st.integers(0, 2**35 - 1)))
def test_varints_are_read_back(values):
    assert report_pages.varints(base64_text(varints(np.array(values, dtype=np.int64)))) == values


def test_varints_of_known_numbers():
    # 300 = 0b10_0101100, the example of the documentation of protocol buffers
    assert varints(np.array([0, 127, 128, 300])).tolist() == [0, 127, 0x80, 1, 0xAC, 0x02]


def test_zigzag():
    assert zigzag(np.array([0, -1, 1, -2, 2])).tolist() == [0, 1, 2, 3, 4]


def test_bytes_are_little_endian():
    assert base64.b64decode(base64_text(np.array([258], dtype=">u2"))) == b"\x02\x01"


def test_positions_keep_their_shape():
    places = np.array([[-1.0, 0.0], [3.0, 1.0], [1.0, 2.0]])
    found = quantised(places).astype(float) / 65535
    assert_allclose(found, [[0, 0.25], [1, 0.5], [0.5, 0.75]], atol=1e-4)


@pytest.mark.parametrize("places", [np.zeros((1, 2)), np.full((3, 2), 7.0)])
def test_equal_positions_are_in_the_middle(places):
    assert_array_equal(quantised(places), 32768)


def test_positions_of_any_size():
    assert quantised(np.array([[-1.7e308, 0], [1.7e308, 0]]))[:, 0].tolist() == [0, 65535]
    assert quantised(np.array([[0.0, 0], [5e-324, 0]])).max() <= 65535


def test_levels():
    found = levels(np.array([0.0, 1e-9, 0.001, 0.03162278, 1.0]), decades=3.0)
    assert found.tolist() == [0, 1, 1, 128, 255]
    assert levels(np.array([2.0, 2.0, 0.0])).tolist() == [255, 255, 0]
    assert levels(np.array([1.0, 10.0, 100.0])).tolist() == [1, 128, 255]
    assert levels(np.zeros(3)).tolist() == [0, 0, 0]
