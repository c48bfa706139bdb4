"""The device that was asked for."""

import pytest

torch = pytest.importorskip("torch")

from symrelu.operators import torch_device  # noqa: E402
from symrelu.operators.torch_device import checked_device  # noqa: E402


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
