"""Work in different streams that uses the same memory: what one writes and another reads or writes is kept in
order, on the device. The emulated GPU runs streams late and in changing orders, and nothing before somebody
waits for it."""

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import on
from pyarray._runtime import lib
from strategies import examples

import pyarray as pa
from pyarray.jit.kernel import from_text

N = 5000
pytestmark = pytest.mark.all_variants  # the emulated GPU alone has streams, and each order finds other mistakes


@pa.kernel
def rounds(out, a, n: int):
    for i in range(out.size):
        x = a[i]
        for _ in range(n):
            x = x * 0.5 + 1
        out[i] = x


def rounds_of(x, n):
    for _ in range(n):
        x = x * 0.5 + 1
    return x


SOURCES = [f"x{k}" for k in range(40)]
# More arrays than have ranges of their own; the last one, which shares a range with what is only read, is written.
add_up = from_text(
    "add_up",
    f"""def add_up({", ".join(SOURCES)}, out):
    for i in range(out.size):
        out[i] = {" + ".join(f"{name}[i]" for name in SOURCES)}
""",
    {},
)

RAW = """
extern "C" __global__ void add_one(double *x, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] += 1;
}
"""


def streams(device, count):
    return [pa.Stream(device, non_blocking=True) for _ in range(count)]


def started(device):
    """An array, and nothing under way."""
    a = pa.asarray(np.random.default_rng(3).random(N), device=device)
    pa.synchronize(device)
    return a, pa.asnumpy(a).copy()


@pytest.fixture(params=["late", "1", "2", "3"])
def order(device, request):
    """How the emulated GPU runs streams."""
    if not device.startswith("hip"):
        yield
        return
    from hip_emulator.build import use_emulator

    library = use_emulator()
    library.hipEmulatorOrder(request.param.encode())
    yield
    library.hipEmulatorOrder(b"late")


@pytest.mark.usefixtures("order")
class TestOrder:
    def test_reads_come_after_writes(self, device):
        a, host = started(device)
        first, second = streams(device, 2)
        for turn in range(6):
            with first:
                b = pa.empty(N, device=device)
                rounds(b, a, 30 + turn)
            with second:
                c = b + 1
                half = b[: N // 2] * 2
            expected = rounds_of(host, 30 + turn)
            np.testing.assert_array_equal(pa.asnumpy(half), expected[: N // 2] * 2)
            np.testing.assert_array_equal(pa.asnumpy(c), expected + 1)

    def test_writes_come_after_reads_and_writes(self, device):
        a, host = started(device)
        first, second = streams(device, 2)
        b, c = pa.empty(N, device=device), pa.empty(N, device=device)
        for turn in range(6):
            with first:
                b[...] = a
                rounds(c, b, 20 + turn)
            with second:
                b[...] = 7.0  # while `first` may still read it
                b += 1
            with first:
                b *= 2
            np.testing.assert_array_equal(pa.asnumpy(c), rounds_of(host, 20 + turn))
            np.testing.assert_array_equal(pa.asnumpy(b), np.full(N, 16.0))

    def test_the_default_stream_takes_part(self, device):
        a, host = started(device)
        (stream,) = streams(device, 1)
        b = pa.empty(N, device=device)
        rounds(b, a, 9)  # before any other stream has had work
        with stream:
            c = b + 1
            rounds(b, c, 4)
        d = b * 1
        np.testing.assert_array_equal(pa.asnumpy(d), rounds_of(rounds_of(host, 9) + 1, 4))

    def test_copies_take_part(self, device):
        a, host = started(device)
        first, second = streams(device, 2)
        with first:
            b = pa.empty(N, device=device)
            rounds(b, a, 25)
        with second:
            np.testing.assert_array_equal(pa.asnumpy(b), rounds_of(host, 25))
            assert b[3].item() == rounds_of(host, 25)[3]
        with first:
            rounds(a, b, 2)
        with second:
            up = pa.asarray(host.copy(), device=device)
        with first:
            up += a
        np.testing.assert_array_equal(pa.asnumpy(up), host + rounds_of(host, 27))

    @pytest.mark.slow
    def test_functions_that_are_repeated(self, device):
        """Their launches are written down, and run again with other addresses."""
        a, host = started(device)
        first, second = streams(device, 2)
        for _ in range(9):
            with first:
                b = pa.cumsum(a)
                c = pa.concat([b, a])
            with second:
                d = pa.sort(c)
                total = pa.sum(b)
            np.testing.assert_allclose(pa.asnumpy(d), np.sort(np.concatenate([np.cumsum(host), host])))
            np.testing.assert_allclose(total.item(), np.cumsum(host).sum())

    def test_kernels_that_say_nothing_of_their_arrays(self, device):
        a, host = started(device)
        first, second = streams(device, 2)
        add_one = pa.RawKernel(RAW, "add_one")
        with first:
            b = pa.empty(N, device=device)
            rounds(b, a, 12)
        with second:
            add_one((4,), (64,), (b, N))
        with first:
            c = b * 3
        np.testing.assert_array_equal(pa.asnumpy(c), (rounds_of(host, 12) + 1) * 3)

    def test_checked_launches(self, device):
        a, host = started(device)
        first, second = streams(device, 2)
        with pa.debug():
            with first:
                b = a + 1
            with second:
                b *= 2
            with first:
                c = b - 1
        np.testing.assert_array_equal(pa.asnumpy(c), (host + 1) * 2 - 1)

    def test_many_ranges_and_streams(self, device):
        """More than are known one by one."""
        a, host = started(device)
        several = streams(device, 3)
        out = pa.zeros(2 * 600, device=device)
        for k in range(600):
            with several[k % 3]:
                out[2 * k : 2 * k + 1] = a[k : k + 1]
        for stream in reversed(several):
            with stream:
                out += 1
        expected = np.zeros(1200)
        expected[::2] = host[:600]
        np.testing.assert_array_equal(pa.asnumpy(out), expected + 3)

    def test_an_access_that_is_no_longer_known_by_itself(self, device):
        """Accesses of other memory have taken its place."""
        a, host = started(device)
        first, second, third = streams(device, 3)
        b, c, out = pa.zeros(N, device=device), pa.zeros(N, device=device), pa.zeros(600, device=device)
        with first, third:
            pass  # a stream that is entered first below would query the others: the emulator then runs their work
        with second:
            out += 1
        with first:
            rounds(b, a, 20)
        with third:
            for k in range(600):
                out[k : k + 1] = a[k : k + 1]
        with second:
            rounds(c, b, 1)  # without an allocation, which may wait for the work before
            np.testing.assert_array_equal(pa.asnumpy(c), rounds_of(host, 21))

    def test_many_arrays(self, device):
        a, host = started(device)
        first, second = streams(device, 2)
        out = pa.zeros(N, device=device)
        with second:
            b = a + 1
        with first:
            add_up(*[a] * len(SOURCES), out)
        with second:
            b += out
            np.testing.assert_allclose(pa.asnumpy(b), (len(SOURCES) + 1) * host + 1)

    @given(data=st.data())
    @examples(10)
    def test_drawn_views(self, device, data):
        """Of a few arrays, in any direction: what one stream reads and writes of them another does next."""
        hosts = [np.random.default_rng(k).random(20) for k in range(3)]
        arrays, several = [on(device, host.copy()) for host in hosts], streams(device, 3)
        pa.synchronize(device)
        for _ in range(12):
            target, source = data.draw(st.permutations(range(3)))[:2]
            start, step = data.draw(st.integers(0, 19)), data.draw(st.sampled_from([1, 2, -1, -2]))
            to, of = slice(start, None, step), data.draw(st.slices(20))
            size = min(hosts[target][to].size, hosts[source][of].size)
            n = data.draw(st.integers(1, 3))
            with data.draw(st.sampled_from(several)):
                rounds(arrays[target][to][:size], arrays[source][of][:size], n)
            hosts[target][to][:size] = rounds_of(hosts[source][of][:size], n)
        for a, host in zip(arrays, hosts, strict=True):
            np.testing.assert_array_equal(pa.asnumpy(a), host)

    def test_a_stream_that_worked_alone_for_long(self, device):
        a, host = started(device)
        first, second = streams(device, 2)
        with second:
            b = a + 1
        with first:
            for _ in range(1100):
                b += 1
        with second:
            c = b * 2
        np.testing.assert_allclose(pa.asnumpy(c), (host + 1101) * 2)

    def test_threads(self, device):
        """Each hands its array on to the next, which works in a stream of its own."""
        a, host = started(device)
        handed, done = [a], []
        turn = threading.Condition()

        def work(number):
            with pa.Stream(device, non_blocking=True), turn:
                assert turn.wait_for(lambda: len(handed) > number, timeout=300)
                handed.append(handed[-1] * 0.5 + 1)
                done.append(number)
                turn.notify_all()

        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_array_equal(pa.asnumpy(handed[-1]), rounds_of(host, 6))


def test_waits_are_counted_and_only_where_memory_is_shared(device):
    place = pa.get_device(device)
    if not place.driver.grid:
        assert place.stream_waits == 0
        return
    place.driver.synchronize_all()  # streams of other tests order nothing any more
    a, _ = started(device)
    first, second = streams(device, 2)
    with first:
        b, e = a + 1, pa.empty(N, device=device)
        rounds(e, b, 2)
    with second:
        d, f = pa.ones(N, device=device), pa.empty(N, device=device)
        rounds(f, a, 2)
    before = place.stream_waits
    for _ in range(5):  # neither uses what the other writes
        with first:
            rounds(b, a, 3)
        with second:
            rounds(d, a, 3)
    assert place.stream_waits == before
    with second:
        rounds(d, b, 3)
        assert place.stream_waits == before + 1
        rounds(d, b, 3)  # it has waited for that
        assert place.stream_waits == before + 1
    with first:
        rounds(b, a, 3)  # which `second` still reads
    assert place.stream_waits == before + 2
    with second:
        rounds(f[: N // 2], b[N // 2 :], 3)
        assert place.stream_waits == before + 3
    with first:
        rounds(b[: N // 2], a, 3)
    assert place.stream_waits == before + 3
    pa.synchronize(device)


def test_the_only_stream_records_no_accesses(device):
    driver = pa.get_device(device).driver
    if not driver.grid:
        pytest.skip("a CPU has one stream")
    a, _ = started(device)
    (stream,) = streams(device, 1)
    with stream:
        for _ in range(1100):  # PA_GPU_CONSECUTIVE and some
            rounds(a, a, 1)
        assert driver._gpu.only_stream == driver._streams[stream.handle]
        assert driver._gpu.access_count == 0
    assert not driver._gpu.only_stream
    pa.synchronize(device)
    assert lib.PA_GPU_CONSECUTIVE <= 1100


def test_without_it_memory_is_reused_after_the_work_before(device, tmp_path):
    """What an array leaves when it ends is another stream's once it has been read."""
    script = tmp_path / "reused.py"
    script.write_text(
        textwrap.dedent(f"""
        import pyarray as pa

        @pa.kernel
        def copied(out, a):
            for i in range(out.size):
                out[i] = a[i]

        place = pa.get_device({device!r})
        out, b = pa.zeros({N}, device=place), pa.ones({N}, device=place)
        first, second = (pa.Stream(place, non_blocking=True) for _ in range(2))
        pa.synchronize(place)
        address = b._ptr
        with first:
            copied(out, b)
            del b
        with second:
            c = pa.full({N}, 7.0, device=place)
            assert c._ptr == address
            pa.synchronize(place)
        first.synchronize()
        print(pa.sum(out).item())
        """)
    )
    environment = os.environ | {"PYARRAY_STREAM_ORDER": "0"}
    ran = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) == N


@pytest.mark.slow
def test_it_can_be_turned_off(device, tmp_path):
    script = tmp_path / "off.py"
    script.write_text(
        textwrap.dedent(f"""
        import pyarray as pa

        place = pa.get_device({device!r})
        a = pa.ones(64, device=place)
        pa.synchronize(place)
        with pa.Stream(place, non_blocking=True):
            b = a + 1
            pa.synchronize(place)
        with pa.Stream(place, non_blocking=True):
            b += 1
            pa.synchronize(place)
        print(place.stream_waits)
        """)
    )
    said = {}
    for setting in "01":
        environment = os.environ | {"PYARRAY_STREAM_ORDER": setting}
        ran = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        said[setting] = int(ran.stdout)
    assert said["0"] == 0
    assert (said["1"] > 0) == pa.get_device(device).driver.grid


def test_work_that_ends_after_another_stream_became_the_only_one(device):
    """An upload takes long; meanwhile another thread makes many launches in its stream, and reads it then."""
    if device == "cpu":
        pytest.skip("a CPU has one stream")
    x, y = pa.zeros(1000, device=device), pa.zeros(16, device=device)
    driver, stream = x.device.driver, pa.Stream(device, non_blocking=True)
    begun, many, ended, read = (threading.Event() for _ in range(4))

    def upload():
        with stream:
            driver.before_access(x._ptr, x.nbytes, True)
            begun.set()
            many.wait(60)
            driver.after_access(x._ptr, x.nbytes, True)
            ended.set()
            read.wait(60)

    thread = threading.Thread(target=upload)
    thread.start()
    begun.wait(60)
    for _ in range(1100):
        y += 1
    many.set()
    ended.wait(60)
    before = x.device.stream_waits
    x[-8:] + 0
    waits = x.device.stream_waits - before
    read.set()
    thread.join()
    assert waits == 1


def test_a_stream_that_is_left_after_an_error(device, monkeypatch):
    if device == "cpu":
        pytest.skip("a CPU has one stream")
    driver, before = pa.get_device(device).driver, pa.current_stream(device).handle

    def fail(stream):
        raise RuntimeError("no event")

    monkeypatch.setattr(driver, "order_event", fail)
    with pytest.raises(RuntimeError, match="no event"), pa.Stream(device):
        pass
    monkeypatch.undo()
    assert pa.current_stream(device).handle == before
    assert (pa.ones(3, device=device) + 1).tolist() == [2, 2, 2]


def test_the_stream_of_each_thread_is_refused(device):
    with pytest.raises(ValueError, match="per-thread default stream, of which each thread has its own; make a stream"):
        pa.Stream.of(2, device)
