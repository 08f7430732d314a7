"""The adjoint of a kernel: the kernel that takes gradients of its results back to its arguments."""
