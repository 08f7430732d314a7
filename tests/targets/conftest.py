"""test_emitted.py is a step of its own, after all other tests."""


def pytest_ignore_collect(collection_path, config):
    second = config.getoption("compile_kernels")
    return True if collection_path.name == "test_emitted.py" and not second else None
