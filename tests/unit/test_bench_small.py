"""The parts of the benchmarks on small arrays: their statements and programs do what their names say, and figures
that are multiples of NumPy's time are the right way up."""

import itertools
import math

import numpy as np
import pytest

import pyarray as pa
from bench import page, part, program_cases, programs, small_arrays
from bench.timing import Race, Row, Times, table


def row(own, numpy, target=None, **more):
    times = {"pyarray": own and Times(own, own, 20, 10), "numpy": Times(numpy, numpy, 20, 10)}
    return Row("16 elements", "a + b", times, target, n=16, against=("numpy",), multiples=True, **more)


# ---- multiples


def test_a_multiple_is_the_time_over_that_of_the_peer():
    found = row(3.0, 2.0, 1 / 1.25)
    assert found.multiple() == pytest.approx(1.5)
    assert found.missed
    assert not row(3.0, 2.0, 1 / 1.75).missed
    assert row(None, 2.0).multiple() is None
    assert Row.from_dict(found.as_dict()) == found


def test_tables_and_the_page_show_multiples_and_the_most_they_are_to_be():
    head, slow, fast = table([row(3.0, 2.0, 1 / 1.25), row(1.0, 2.0, 1 / 1.25)]).splitlines()
    assert head.split()[-4:] == ["times", "peer's", "at", "most"]
    assert slow.split()[-4:] == ["1.50", "(1.50)", ">", "1.2"]
    assert fast.split()[-3:] == ["0.50", "(0.50)", "1.2"]
    found = {"rows": [row(3.0, 2.0, 1 / 1.25).as_dict()], "failed": None, "machine": {}, "versions": {}}
    assert '<b class="down">1.50 (≤\u20091.2)</b>' in page.page({"small_arrays": found}, {})


def test_means_are_of_multiples():
    (figure, medians) = small_arrays.means({16: [row(4.0, 1.0), row(1.0, 1.0), row(None, 1.0)]})
    assert figure.value == medians.value == pytest.approx(2.0)
    assert figure.missed
    first = next(iter(programs.means([row(4.0, 1.0), row(1.0, 1.0)])))
    assert (first.value, first.at_most) == (pytest.approx(2.0), programs.MOST)


# ---- statements


def test_the_parts_are_listed():
    assert {"small_arrays", "programs"} <= set(part.PARTS)


def test_the_mean_is_of_22_calls():
    assert len(small_arrays.COUNTED) == 22
    assert len({case.statement for case in small_arrays.CASES}) == len(small_arrays.CASES)


def test_a_statement_is_executed_as_often_as_it_is_written():
    found = []
    small_arrays.compiled("found.append(len(found))", {"found": found, "unused": None}, 7)()
    assert found == list(range(7))


def test_an_augmented_assignment_writes_to_the_operand():
    names = small_arrays.operands(16, np, np.copy)
    wanted = names["c"] + 3 * names["b"]
    small_arrays.compiled("c += b", names, 3)()
    np.testing.assert_allclose(names["c"], wanted)


def test_times_are_of_one_statement(monkeypatch):
    whole = Race({"pyarray": Times(20.0, 30.0, 5, 8), "numpy": None}, {"numpy": "no"})
    monkeypatch.setattr(small_arrays, "race", lambda candidates, budget: whole)
    found = small_arrays.raced({}, 0.1, 10)
    assert found == {"pyarray": Times(2.0, 3.0, 5, 80), "numpy": None}
    assert found.why == {"numpy": "no"}


def test_what_differs_from_numpy_is_said():
    ours, numpys = (small_arrays.operands(16, np, np.copy) for _ in range(2))
    assert small_arrays.difference("a + b", ours, numpys) is None
    ours["a"] = ours["a"] + 1
    assert small_arrays.difference("a + b", ours, numpys).startswith("AssertionError: Not equal to tolerance")
    ours["a"] = ours["a"].astype(np.float32)
    assert small_arrays.difference("a + b * 0", ours, numpys | {"b": numpys["b"]}) is not None
    assert small_arrays.difference("c[mask] = 1.0", ours, numpys) is None
    ours["c"][5] += 1
    assert small_arrays.difference("c[3] = 1.0", ours, numpys) is not None  # what is written counts


@pytest.mark.parametrize("case", [*small_arrays.CASES, *small_arrays.MATRICES], ids=lambda case: case.statement)
def test_a_case_gives_the_same_in_both_libraries(case):
    made = small_arrays.libraries()
    ours, numpys = (small_arrays.operands(16, *made[library]) for library in ("pyarray", "numpy"))
    assert small_arrays.difference(case.statement, ours, numpys) is None


# ---- programs


def inputs(name, size):
    (program,) = (p for p in program_cases.PROGRAMS if p.name == name)
    return program.inputs(np.random.default_rng(1), size)


def test_elimination_solves():
    a, b = inputs("Gauss elimination", 12)
    np.testing.assert_allclose(program_cases.gauss(np, a, b), np.linalg.solve(a, b))


def test_columns_are_orthonormal():
    (a,) = inputs("Gram-Schmidt", 12)
    q = program_cases.gram_schmidt(np, a)
    np.testing.assert_allclose(q.T @ q, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(q @ (q.T @ a), a)


def test_the_likeliest_states():
    start, change, emit, seen = inputs("Viterbi", 3)
    states, score = program_cases.viterbi(np, start, change, emit, seen[:5])
    logs = {}
    for way in np.ndindex(*(3,) * 5):
        steps = sum(change[i, j] for i, j in itertools.pairwise(way))
        logs[way] = start[way[0]] + steps + sum(emit[i, k] for i, k in zip(way, seen, strict=False))
    assert tuple(states) == max(logs, key=logs.get)
    assert score.max() == pytest.approx(max(logs.values()))


def test_a_glider_moves():
    board = np.zeros((10, 10), np.int64)
    board[1, 2] = board[2, 3] = board[3, 1] = board[3, 2] = board[3, 3] = 1
    np.testing.assert_array_equal(program_cases.life(np, board, 4), np.roll(board, (1, 1), (0, 1)))


def test_dithering_keeps_the_mean():
    found = program_cases.dither(np, np.full((24, 24), 100.0))
    assert set(np.unique(found)) == {0.0, 255.0}
    assert found.mean() == pytest.approx(100, abs=5)


def test_edits_between_two_words():
    words = [list(map(ord, word)) for word in ("kitten", "sitting")]
    assert program_cases.edit_distance(np, words[0], np.array(words[1]))[-1] == 3


def test_filters_are_what_a_loop_gives():
    signal, taps, decay, block = inputs("filters in blocks", 16)
    wanted, last = [], 0.0
    for x in np.convolve(signal, taps)[: len(signal)]:
        wanted.append(last := x + decay * last)
    np.testing.assert_allclose(program_cases.filters(np, signal, taps, decay, block), wanted)


def test_primes():
    wanted = [n for n in range(2, 101) if all(n % k for k in range(2, math.isqrt(n) + 1))]
    assert program_cases.sieve(np, 100).tolist() == wanted


def test_a_simplex_finds_less():
    start, _ = inputs("Nelder-Mead", 2)
    _, value = program_cases.nelder_mead(np, start, 200)
    assert value < 1e-6


def test_clusters_are_around_their_centres():
    points, count, _ = inputs("k-means", 50)
    centres, nearest = program_cases.k_means(np, points, count, 100)
    for k, centre in enumerate(centres):
        np.testing.assert_allclose(centre, points[nearest == k].mean(axis=0))


def test_estimates_follow_what_moves_as_assumed():
    move, measure, noise, error, _ = inputs("Kalman filter", 4)
    states = [np.array([1.0, -1.0, 0.5, 0.1])]
    while len(states) < 100:
        states.append(move @ states[-1])
    found = program_cases.kalman(np, move, measure, noise, error, np.array(states) @ measure.T)
    np.testing.assert_allclose(found[-1], states[-1], rtol=1e-3, atol=1e-3)  # also what isn't measured


def test_rays_meet_the_nearer_sphere():
    directions = np.array([[0.0, 0, 1], [0, 1, 0]])
    centres = np.array([[0.0, 0, 9], [0, 0, 5]])
    nearest, which = program_cases.rays(np, np.zeros(3), directions, centres, [1.0, 1.0])
    np.testing.assert_array_equal(nearest, [4, np.inf])
    assert which.tolist() == [1, -1]


@pytest.mark.slow
@pytest.mark.parametrize("program", program_cases.PROGRAMS, ids=lambda program: program.name)
def test_a_program_gives_the_same_in_both_libraries(program):
    own = programs.prepared(program, program.sizes[0], pa, lambda x: pa.asarray(x, copy=True))
    assert programs.difference(own, programs.prepared(program, program.sizes[0], np, np.copy)) is None


def test_programs_leave_their_inputs_as_they_are():
    for program in program_cases.PROGRAMS:
        given = program.inputs(np.random.default_rng(0), program.sizes[0])
        program.run(np, *given)
        for left, was in zip(given, program.inputs(np.random.default_rng(0), program.sizes[0]), strict=True):
            np.testing.assert_array_equal(left, was, err_msg=program.name)
