"""Draws kernels whose results depend smoothly on their arguments, almost everywhere."""

import random

UNARY = ("math.sin({})", "math.tanh({})", "math.exp(-abs({}))", "math.sqrt(abs({}) + 1)", "({}) * 0.5", "abs({})",
         "half({})", "(-({}))", "math.atan({})", "float(np.float64({}))", "bent({})")  # fmt: skip
BINARY = ("({} + {})", "({} - {})", "({} * {})", "({} / (2 + abs({})))", "min({}, {})", "max({}, {})", "mixed({}, {})")


class Draw:
    """One kernel: `text` of a module that defines it as `k(x, w, a, y, z, t, p, n)`."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines = []
        self.names = 0
        self.depth = 1
        self.kernel()
        self.text = "\n".join(self.lines)

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def new(self):
        self.names += 1
        return f"v{self.names}"

    def chance(self, p):
        return self.rng.random() < p

    def atom(self, scope):
        options = ["x[i]", "w[(i * 2 + 1) % 5]", "w[idx(i)]", "p", "a[i, 1]", "0.75", *scope["floats"] * 2]
        options += [f"w[{j}]" for j in scope["loops"]] + [f"a[i, {j} % 3]" for j in scope["loops"]]
        options += [f"{u}[{self.rng.randrange(3)}]" for u in scope["arrays"]] * 2
        options += ["t[i]"] if scope["t"] else []
        return self.rng.choice(options)

    def value(self, scope, depth=2):
        if depth == 0 or self.chance(0.2):
            return self.atom(scope)
        if self.chance(0.35):
            return self.rng.choice(UNARY).format(self.value(scope, depth - 1))
        if self.chance(0.15):
            c = self.condition(scope)
            return f"({self.value(scope, depth - 1)} if {c} else {self.value(scope, depth - 1)})"
        return self.rng.choice(BINARY).format(self.value(scope, depth - 1), self.value(scope, depth - 1))

    def condition(self, scope):
        return self.rng.choice((f"{self.atom(scope)} > {self.rng.uniform(-1, 1):.3f}", "i % 2 == 0", "i > n // 2"))

    def statements(self, scope, count):
        for _ in range(count):
            self.rng.choice((self.assign, self.assign, self.update, self.branch, self.loop, self.array))(scope)

    def assign(self, scope):
        value = self.value(scope)
        if scope["floats"] and self.chance(0.4):
            self.line(f"{self.rng.choice(scope['floats'])} = {value}")
            return
        name = self.new()
        self.line(f"{name} = {value}")
        scope["floats"].append(name)

    def update(self, scope):
        if scope["arrays"] and self.chance(0.4):
            u, k = self.rng.choice(scope["arrays"]), self.rng.randrange(3)
            self.line(f"{u}[{k}] {self.rng.choice(('=', '+=', '*='))} {self.value(scope)}")
        elif scope["floats"]:
            self.line(f"{self.rng.choice(scope['floats'])} {self.rng.choice(('+=', '-=', '*='))} {self.value(scope)}")

    def array(self, scope):
        if len(scope["arrays"]) < 2:
            name = self.new()
            self.line(f"{name} = pa.array([{', '.join(self.value(scope, 1) for _ in range(3))}])")
            scope["arrays"].append(name)
        elif self.chance(0.5):
            u, v = self.rng.sample(scope["arrays"], 2)
            self.line(f"{u} = {u} * {self.value(scope, 1)} + {v}.copy()")
        else:
            u, v = self.rng.sample(scope["arrays"], 2)
            name = self.new()
            self.line(f"{name} = {u} @ {v}")
            scope["floats"].append(name)

    def inner(self, scope):
        return {k: v if k == "t" else list(v) for k, v in scope.items()}

    def branch(self, scope):
        if self.depth > 4:
            return
        self.line(f"if {self.condition(scope)}:")
        self.body(scope)
        if self.chance(0.5):
            self.line("else:")
            self.body(scope)

    def body(self, scope, loop=None):
        self.depth += 1
        inner = self.inner(scope)
        if loop:
            inner["loops"].append(loop)
        self.line("pass")
        self.statements(inner, self.rng.randrange(1, 3))
        if loop and self.chance(0.25):
            self.line(f"if {self.condition(inner)}:")
            self.depth += 1
            self.line(self.rng.choice(("break", "continue")))
            self.depth -= 1
            self.statements(inner, 1)
        self.depth -= 1

    def loop(self, scope):
        if self.depth > 3:
            return
        j = self.new()
        ranges = ("3", "m", "1, 4", "4, 0, -2", "n - 3", "i % 3")
        self.line(f"for {j} in range({self.rng.choice(ranges)}):")
        self.body(scope, j)

    def kernel(self):
        self.depth = 0
        self.line("def k(x, w, a, y, z, t, p: float, n: int, m: pa.constexpr):")
        self.depth = 1
        two = self.chance(0.4)
        reduces = self.chance(0.3)
        if reduces:
            self.line("s = 0.0")
        for phase in range(1 + two):
            self.line("for i in range(n):")
            self.depth = 2
            scope = {"floats": [], "arrays": [], "loops": [], "t": phase == 1}
            self.statements(scope, self.rng.randrange(2, 6))
            if two and phase == 0:
                self.line(f"t[i] = {self.value(scope)}")
                self.depth = 1
                continue
            self.line(self.rng.choice(("y[i] = {}", "y[n - 1 - i] = {}", "y[i] += {}", "pa.atomic_add(y, i // 2, {})"
                                       )).format(self.value(scope)))  # fmt: skip
            if self.chance(0.3):
                self.line(f"y[i] *= {self.value(scope, 1)}")
            if reduces:
                self.line(f"s += {self.value(scope)}")
            self.depth = 1
        if reduces:
            self.line(f"z[0] = {self.rng.choice(('s', 'math.sin(s)', 's * p'))}")
