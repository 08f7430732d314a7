"""From a Python function and live arguments to a launch: binding, compiling, caching, the one launch path,
error reports."""
