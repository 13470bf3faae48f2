"""What compare-eager says: medians by case, the ratios that are wanted, tables. Standard library only."""

PRECISIONS = ("fp32", "bf16")
SIDES = ("installed", "best", "public", "ours")
TITLES = {"installed": "eager as installed", "best": "eager at its best",
          "public": "public implementation's structure", "ours": "ours"}
MAIN_SIZE = "6x512"


class Results:
    """Rows by case, and the numbers that are wanted of them (issues 5 and 19)."""

    def __init__(self, rows, processor_class=""):
        self.rows = {(row["bench"], row["pattern"], row["precision"], row.get("size", "")): row for row in rows}
        self.processor_class = processor_class

    def value(self, bench, pattern, precision, side, key="seconds", size=""):
        side = (self.rows.get((bench, pattern, precision, size)) or {}).get(side)
        return side[key] if side else None  # the peak of memory may be unknown

    def least(self, bench, pattern, side, key="seconds", size=""):
        """Over both precisions; nothing unless both were measured."""
        values = [self.value(bench, pattern, precision, side, key, size) for precision in PRECISIONS]
        return None if None in values else min(values)

    def fastest(self, bench, pattern, precision, size=""):
        """Seconds of eager with the best settings, or as installed should that be measured and faster."""
        best, installed = (self.value(bench, pattern, precision, side, size=size) for side in ("best", "installed"))
        return best if best is None or installed is None else min(best, installed)

    def fastest_of_both(self, bench, pattern, size=""):
        values = [self.fastest(bench, pattern, precision, size) for precision in PRECISIONS]
        return None if None in values else min(values)

    def best_precision(self, bench, pattern, size=""):
        values = {precision: self.fastest(bench, pattern, precision, size) for precision in PRECISIONS}
        return None if None in values.values() else min(values, key=values.get)

    def wanted(self):
        yield from self.wanted_with_amx()
        yield from self.wanted_by_class()

    def wanted_with_amx(self):
        for pattern in ("threshold", "nearest"):
            yield self.ratio(f"{pattern}: ours fp32 over eager fp32",
                             self.fastest("attention", pattern, "fp32"),
                             self.value("attention", pattern, "fp32", "ours"), 4)
            yield self.ratio(f"{pattern}: ours bf16 over eager's best precision",
                             self.fastest_of_both("attention", pattern),
                             self.value("attention", pattern, "bf16", "ours"), 12)
        yield self.ratio("full attention: ours over eager, the best precision of each",
                         self.fastest_of_both("attention", "full"), self.least("attention", "full", "ours"), 20)
        case, size = ("train", "routing"), MAIN_SIZE
        step = "training step with routing: ours bf16 over eager"
        ours = self.value(*case, "bf16", "ours", size=size)
        yield self.ratio(f"{step} at its best, best precision", self.fastest_of_both(*case, size), ours, 3)
        yield self.ratio(f"{step} as installed, best precision", self.least(*case, "installed", size=size), ours, 12)
        yield self.ratio("memory of that step: the least of eager at its best over ours",
                         self.least(*case, "best", "peak_bytes", size),
                         self.value(*case, "bf16", "ours", "peak_bytes", size), 3)

    def wanted_by_class(self):
        """Of every size that was measured: fp32 on AVX2, bf16 on what has more."""
        precision, wanted = ("fp32", 1.5) if self.processor_class == "avx2" else ("bf16", 1.8)
        for bench, pattern, measured, size in self.rows:
            if (bench, pattern, measured) != ("train", "routing", precision):
                continue
            case = ("train", "routing", precision)
            yield self.ratio(f"step of {size}, {precision}: ours over eager at its best", self.fastest(*case, size),
                             self.value(*case, "ours", size=size), wanted)
            yield self.ratio(f"memory of {size}, {precision}: eager at its best over ours",
                             self.value(*case, "best", "peak_bytes", size),
                             self.value(*case, "ours", "peak_bytes", size), 4)

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
    print(f"# Ours beside PyTorch eager, {report['processor_class']}{report['label']}\n")
    for key, value in report["machine"].items():
        print(f"- {key}: {value}")
    print("\nSeconds a pass (attention: forward and backward with its plan; train: a step), and MiB above start-up\n")
    sides = report["sides"]
    others = [side for side in sides if side != "ours"]
    lines = []
    for row in report["rows"]:
        ratios = [f"{row[side]['seconds'] / row['ours']['seconds']:.2f}" if row[side] and row["ours"] else "-"
                  for side in others]
        case = " ".join(word for word in (row["size"], row["pattern"]) if word)
        lines.append([row["bench"], case, row["precision"], *(seconds_text(row[side]) for side in sides), *ratios,
                      *(bytes_text(row[side]) for side in sides), "; ".join(row["remarks"])])
    print_table(["bench", "case", "precision", *sides, *(f"{side} / ours" for side in others),
                 *(f"MiB {side}" for side in sides), "remarks"], lines)
    print()
    print_table(["wanted", "ratio", "at least", ""],
                [[line["what"], "-" if line["ratio"] is None else f"{line['ratio']:.2f}", line["wanted"],
                  {True: "met", False: "NOT MET", None: "not measured"}[line["met"]]] for line in report["wanted"]])
