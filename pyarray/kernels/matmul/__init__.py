"""Matrix products, with a vector and with an epilogue. Those whose block sizes are tuned import the tuner."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import gemm_blocks as gemm_blocks
    from . import gemm_epilogue as gemm_epilogue
else:
    from ...lazy import submodules

    __getattr__ = submodules(__name__)
