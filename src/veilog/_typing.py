"""Names for arrays of numbers by what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]
AnyFloatArray = npt.NDArray[np.floating]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
