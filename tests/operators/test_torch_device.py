"""The device that was asked for, and products in float32 whatever the process allows."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("array_api_compat")

from symrelu.operators import torch_device  # noqa: E402
from symrelu.operators.torch_device import checked_device, full_float32  # noqa: E402


def test_devices():
    assert checked_device("cpu") == torch.device("cpu")
    assert checked_device(torch.device("cpu")) == torch.device("cpu")


@pytest.mark.parametrize("device", ["gpu", None, 1.5])
def test_what_is_no_device_is_refused(device):
    with pytest.raises(ValueError, match=r"device must be 'cuda', 'cpu' or another device of torch, got"):
        checked_device(device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:1", torch.device("cuda")])
def test_without_a_gpu_the_message_has_the_remedy(device):
    with pytest.raises(ValueError, match=r"device='cuda.*needs an NVIDIA GPU.*device='cpu'.*symrelu\[cuda\]"):
        checked_device(device)


def test_a_gpu_that_is_not_there(monkeypatch):
    monkeypatch.setattr(torch_device, "check_cuda", lambda *names: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert checked_device("cuda:1").index == 1
    with pytest.raises(ValueError, match="'cuda:2' is not one of the 2 GPUs"):
        checked_device("cuda:2")


@pytest.fixture
def _own_precision():
    """Leave the settings of the process as they are."""
    with full_float32():
        yield


@pytest.mark.usefixtures("_own_precision")
@pytest.mark.parametrize("precision", ["highest", "high", "medium"])
def test_the_precision_is_full_inside_and_restored_after_it(precision):
    torch.set_float32_matmul_precision(precision)
    with full_float32():
        assert torch.get_float32_matmul_precision() == "highest"
        assert not torch.backends.cuda.matmul.allow_tf32
    assert torch.get_float32_matmul_precision() == precision
    assert torch.backends.cuda.matmul.allow_tf32 == (precision != "highest")


@pytest.mark.usefixtures("_own_precision")
def test_an_error_restores_it_too():
    torch.set_float32_matmul_precision("high")
    with pytest.raises(ZeroDivisionError), full_float32():
        raise ZeroDivisionError
    assert torch.get_float32_matmul_precision() == "high"


@pytest.mark.usefixtures("_own_precision")
@pytest.mark.parametrize("precision", ["tf32", "ieee", "none"])
def test_the_precision_of_one_library_is_restored_too(precision):
    matmul = torch.backends.cuda.matmul
    if not hasattr(matmul, "fp32_precision"):
        pytest.skip("this torch has one setting for all")
    matmul.fp32_precision = precision
    with full_float32():
        assert matmul.fp32_precision == "ieee"
    assert matmul.fp32_precision == precision
