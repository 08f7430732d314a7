"""Every public function that takes arrays, with drawn operands, against NumPy.

A row (`rows`) says how one function is called and what is drawn for it; a case (`operands`) is one such
call: the layouts of its operands, which of them share memory and how, and the other arguments. Each case runs
several times among others, each time with fresh memory and values, so that whatever the library remembers of
a call is made, used and confused if it can be. What is meant to differ stands in `docs/deviations.py`.

`python -m tests.differential --calls 100000 --device cpu --seed 1` prints each difference as a line.
"""
