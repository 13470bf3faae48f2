"""The models whose training steps are compared, in the words of all sides. Standard library only."""
from typing import NamedTuple


class Size(NamedTuple):
    """Options of measure.py without their dashes; `preset` is what our program is told instead."""
    numbers: dict
    flags: tuple = ()
    preset: str = None

    def words(self):
        numbers = [word for name, value in self.numbers.items()
                   for word in ("-n" if name == "n" else f"--{name}", str(value))]
        return numbers + [f"--{name}" for name in self.flags]

    def our_words(self):
        return ["--preset", self.preset] if self.preset else self.words()


def half_routed(n, layers, width, window, clusters):
    return Size({"n": n, "layers": layers, "width": width, "heads": 8, "window": window, "clusters": clusters})


def like_tiny_enwik8(preset, batch):
    """8 local heads with relative tables and recency in each layer; 2 routed ones join them in the top 2."""
    return Size({"n": 2048, "batch": batch, "layers": 4, "width": 256, "heads": 8, "content-heads": 2,
                 "content-layers": 2, "window": 128, "clusters": 16, "scale": 0.5},
                ("add-content", "relative", "recency"), preset)


SIZES = {
    "6x512": half_routed(8192, 6, 512, 256, 32),
    "quickstart": like_tiny_enwik8("quickstart", 1),
    "tiny-enwik8": like_tiny_enwik8("tiny-enwik8", 4),
    "4x128": half_routed(2048, 4, 128, 128, 16),
}
