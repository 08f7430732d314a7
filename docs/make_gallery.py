"""Draws the pictures of docs/gallery.md: runs each example that draws one, and keeps them small.

Run it: python docs/make_gallery.py [name ...]
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

EXAMPLES = Path(__file__).resolve().parent / "examples"
LIMIT = 30_000  # bytes of a picture


def examples() -> list[str]:
    """Names of the examples that draw a picture."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(EXAMPLES.glob("*.py"))}
    return [name for name, text in texts.items() if re.search(r'add_argument\("--picture"', text)]


def draw(name: str) -> None:
    """Run the example and write its picture with as many colors as the limit allows."""
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder) / "picture.png"
        subprocess.run((sys.executable, EXAMPLES / f"{name}.py", "--picture", drawn), check=True)
        image = Image.open(drawn).convert("RGB")
    path = EXAMPLES / f"{name}.png"
    for colors in (256, 128, 64, 32, 16, 8):
        image.quantize(colors).save(path, optimize=True)
        if path.stat().st_size <= LIMIT:
            print(f"{path.name}: {path.stat().st_size} bytes, {colors} colors")
            return
    raise ValueError(f"{path.name} has {path.stat().st_size} bytes with 8 colors, of at most {LIMIT}: draw it smaller")


if __name__ == "__main__":
    for each in sys.argv[1:] or examples():
        draw(each)
