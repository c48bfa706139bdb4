"""The operator on arrays that know the array API standard only."""

from typing import Any

import array_api_strict
import numpy as np

from symrelu.operators import ReferenceOperator


class StrictOperator(ReferenceOperator):
    """The formulas on arrays that know the standard only, on a device that NumPy cannot read."""

    xp = array_api_strict

    def asarray(self, A: np.ndarray) -> Any:
        return self.xp.asarray(np.asarray(A, self.dtype), device=array_api_strict.Device("device1"), copy=True)

    def to_numpy(self, A: Any) -> np.ndarray:
        return np.array(A.to_device(array_api_strict.Device("CPU_DEVICE")))
