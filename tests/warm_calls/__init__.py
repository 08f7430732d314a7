"""Every public function, method and operator, cold, warm and captured: a call gives the same however often it was made.

A family (`changes`) is a drawn call and some that differ from it in one thing: layouts, what shares memory with
what, dtypes, numbers, sizes, writability, whose memory it is, the device. Its calls run in mixed order, each often
enough for a plan to be made and used, with fresh arrays or with the same ones and other values; then each again after
`clear_plans`. Results, errors, warnings and the memory of all operands must be the same bits (`outcomes`).

`python -m tests.warm_calls --calls 100000 --device cpu --seed 1 --processes 2` prints each difference as a line.
"""
