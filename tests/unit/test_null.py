"""The null device: everything is recorded, nothing happens."""

from pyarray.driver import get_device
from pyarray.memory import Buffer


def test_calls_are_recorded():
    driver = get_device("null:1").driver
    driver.calls.clear()
    first, second = driver.allocate(100), driver.allocate(1)
    assert second >= first + 100
    driver.copy_in(first, 4096, 100)
    driver.fill(second, 0, 1)
    driver.free(first, 100)
    assert driver.calls == [
        ("allocate", (100,)),
        ("allocate", (1,)),
        ("copy_in", (first, 4096, 100)),
        ("fill", (second, 0, 1)),
        ("free", (first, 100)),
    ]


def test_compile_and_launch():
    driver = get_device("null").driver
    module = driver.load(driver.compiler().compile("text"))
    function = driver.function(module, "scale")
    driver.calls.clear()
    assert driver.launcher(function)(b"12345678") is None
    assert driver.checked_launcher(function)(b"12345678") is None
    assert driver.calls == [("launch", (function, b"12345678"))] * 2
    assert driver.compiler().compiled[-1] == "text"


def test_devices_do_not_share():
    first, second = get_device("null:0"), get_device("null:1")
    assert first.driver is not second.driver
    assert Buffer.allocate(first, 8).ptr != Buffer.allocate(second, 8).ptr
