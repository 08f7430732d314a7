"""`pytest tests/lang --update-golden` writes the golden texts anew."""


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="write tests/lang/golden/*.c anew")
