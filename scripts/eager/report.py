"""What compare-eager says: medians by case, the ratios that are wanted, tables. Standard library only."""

PRECISIONS = ("fp32", "bf16")
SIDES = ("installed", "best", "ours")
TITLES = {"installed": "eager as installed", "best": "eager at its best", "ours": "ours"}


class Results:
    """Rows by case, and the numbers that are wanted of them (issue 5)."""

    def __init__(self, rows):
        self.rows = {(row["bench"], row["pattern"], row["precision"]): row for row in rows}

    def value(self, bench, pattern, precision, side, key="seconds"):
        side = (self.rows.get((bench, pattern, precision)) or {}).get(side)
        return side[key] if side else None  # the peak of memory may be unknown

    def least(self, bench, pattern, side, key="seconds"):
        """Over both precisions; nothing unless both were measured."""
        values = [self.value(bench, pattern, precision, side, key) for precision in PRECISIONS]
        return None if None in values else min(values)

    def fastest(self, bench, pattern, precision):
        """Seconds of eager with the best settings, or as installed should that be faster."""
        values = [self.value(bench, pattern, precision, side) for side in ("installed", "best")]
        return None if None in values else min(values)

    def fastest_of_both(self, bench, pattern):
        values = [self.fastest(bench, pattern, precision) for precision in PRECISIONS]
        return None if None in values else min(values)

    def best_precision(self, bench, pattern):
        values = {precision: self.fastest(bench, pattern, precision) for precision in PRECISIONS}
        return None if None in values.values() else min(values, key=values.get)

    def wanted(self):
        for pattern in ("threshold", "nearest"):
            yield self.ratio(f"{pattern}: ours fp32 over eager fp32",
                             self.fastest("attention", pattern, "fp32"),
                             self.value("attention", pattern, "fp32", "ours"), 4)
            yield self.ratio(f"{pattern}: ours bf16 over eager's best precision",
                             self.fastest_of_both("attention", pattern),
                             self.value("attention", pattern, "bf16", "ours"), 12)
        yield self.ratio("full attention: ours over eager, the best precision of each",
                         self.fastest_of_both("attention", "full"), self.least("attention", "full", "ours"), 20)
        step = "training step with routing: ours bf16 over eager"
        ours = self.value("train", "routing", "bf16", "ours")
        yield self.ratio(f"{step} at its best, best precision", self.fastest_of_both("train", "routing"), ours, 3)
        yield self.ratio(f"{step} as installed, best precision", self.least("train", "routing", "installed"), ours, 12)
        yield self.ratio("memory of that step: the least of eager at its best over ours",
                         self.least("train", "routing", "best", "peak_bytes"),
                         self.value("train", "routing", "bf16", "ours", "peak_bytes"), 3)

    def ratio(self, what, eager, ours, wanted):
        ratio = eager / ours if eager is not None and ours else None
        return {"what": what, "eager": eager, "ours": ours, "ratio": ratio, "wanted": wanted,
                "met": None if ratio is None else ratio >= wanted}


def print_table(heads, lines):
    widths = [max(len(str(line[i])) for line in [heads] + lines) for i in range(len(heads))]
    for line in [heads, ["-" * width for width in widths]] + lines:
        cells = [str(cell).ljust(width) for cell, width in zip(line, widths)]
        print("| " + " | ".join(cells) + " |")


def seconds_text(side):
    return f"{side['seconds']:.3f}" if side else "-"


def bytes_text(side):
    return f"{side['peak_bytes'] / 2**20:.0f}" if side and side["peak_bytes"] is not None else "-"


def print_report(report):
    print(f"# Ours beside PyTorch eager{report['label']}\n")
    for key, value in report["machine"].items():
        print(f"- {key}: {value}")
    print("\nSeconds a pass (attention: forward and backward with its plan; train: a step), and MiB above start-up\n")
    lines = []
    for row in report["rows"]:
        sides = [row[side] for side in SIDES]
        ratios = [f"{side['seconds'] / row['ours']['seconds']:.1f}" if side and row["ours"] else "-"
                  for side in sides[:2]]
        lines.append([row["bench"], row["pattern"], row["precision"], *map(seconds_text, sides), *ratios,
                      *map(bytes_text, sides), "; ".join(row["remarks"])])
    print_table(["bench", "pattern", "precision", "installed", "best", "ours", "installed / ours", "best / ours",
                 "MiB installed", "MiB best", "MiB ours", "remarks"], lines)
    print()
    print_table(["wanted", "ratio", "at least", ""],
                [[line["what"], "-" if line["ratio"] is None else f"{line['ratio']:.1f}", line["wanted"],
                  {True: "met", False: "NOT MET", None: "not measured"}[line["met"]]] for line in report["wanted"]])
