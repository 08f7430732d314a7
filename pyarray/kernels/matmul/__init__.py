"""Matrix products, with a vector and with an epilogue.

What few of them need is imported then: the tuner, and what is for GPUs alone."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import deep_products as deep_products
    from . import gemm_bf16x6 as gemm_bf16x6
    from . import gemm_blocks as gemm_blocks
    from . import gemm_epilogue as gemm_epilogue
    from . import gemv as gemv
    from . import split_k as split_k
    from . import tall_skinny as tall_skinny
else:
    from ...lazy import submodules

    __getattr__ = submodules(__name__)
