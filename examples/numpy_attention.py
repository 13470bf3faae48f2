"""Which keys every head of a model reads, and what it makes of them, in NumPy.

The second half of examples/numpy_logits.py; docs/model-format.md has the same headings.
"""
import math
from collections.abc import Iterator

import numpy as np

PATTERNS = "local", "full", "strided", "fixed", "local2d", "span", "random", "lsh", "routing"
LOW32, LOW64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def layer_norm(x: np.ndarray, gain: float | np.ndarray = 1,
               bias: float | np.ndarray = 0) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-6) * gain + bias


# --- Random streams -----------------------------------------------------------------------------
def mix(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) & LOW64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & LOW64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & LOW64
    return value ^ (value >> 31)


def stream_key(seed: int, name: str, *numbers: int) -> int:
    key = mix(seed)
    for byte in name.encode():
        key = mix(key ^ byte)
    key = mix(key ^ (len(name.encode()) << 32) ^ len(numbers))
    for number in numbers:
        key = mix(key ^ mix(number))
    return key


def words(key: int) -> Iterator[int]:
    """The 32-bit numbers of a stream: Philox4x32-10 of the counters 0, 1, 2 …"""
    for block in range(LOW64):
        a, b, c, d = block & LOW32, block >> 32, 0, 0
        low, high = key & LOW32, key >> 32
        for _ in range(10):
            x, y = 0xD2511F53 * a, 0xCD9E8D57 * c
            a, b, c, d = (y >> 32) ^ b ^ low, y & LOW32, (x >> 32) ^ d ^ high, x & LOW32
            low, high = (low + 0x9E3779B9) & LOW32, (high + 0xBB67AE85) & LOW32
        yield from (a, b, c, d)


def sample(key: int, population: int, count: int) -> np.ndarray:
    """`count` of the numbers 0 … population - 1, ascending."""
    stream, chosen = words(key), set()
    for last in range(population - count, population):
        word = next(w for w in stream if w >= (2**32 - last - 1) % (last + 1))
        draw = word % (last + 1)
        chosen.add(last if draw in chosen else draw)
    return np.array(sorted(chosen), int)


# --- Heads and their lists ------------------------------------------------------------------------
def in_layers(text: str, layer: int, layers: int) -> bool:
    """Is the layer one of attention.content_layers?"""
    which, _, number = text.partition(" ")
    if which in ("top", "bottom"):
        return layer >= layers - int(number) if which == "top" else layer < int(number)
    if ".." in which:
        first, last = which.split("..")
        return int(first) <= layer <= int(last)
    return {"all": True, "even": layer % 2 == 0, "odd": layer % 2 == 1}[which]


def head_groups(config: dict, layer: int, kind: str) -> list[dict]:
    """The groups of heads of a layer, in the order of their rows: sections of the configuration."""
    given, model = config["attention"], config["model"]
    layers = model["encoder_layers" if kind == "encoder" else "layers"]
    content = given[{"encoder": "encoder_content", "cross": "cross_content"}.get(kind, "content")]
    heads, of_content = given["heads"], given["cross_heads" if kind == "cross" else "content_heads"]
    added = given["add_content"] and kind != "cross"
    if kind != "cross" and (content == "local" and not added or
                            not in_layers(given["content_layers"], layer, layers)):
        of_content = 0
    counts = [("full" if kind == "cross" else "local", heads if added else heads - of_content)]
    counts += [("span", 1)] * of_content if content == "span" else [(content, of_content)]
    groups, first_head = [], 0
    for pattern, count in counts:
        if count == 0:
            continue
        if pattern not in PATTERNS:
            raise SystemExit(f"heads of the pattern {pattern} are not known to this script")
        group = dict(config[pattern], pattern=pattern, kind=kind)
        group.update(heads=count, first_head=first_head)
        if kind != "decoder":  # sections are written for causal heads
            if group["key_shift"]:
                group["self"] = "only_if_alone"
            group.update(recency=False, key_shift=0)
            group["shared_query_key"] &= kind == "encoder" and pattern != "routing"
        if kind == "cross":
            group.update(self="allowed", relative="none", form="block")
        group["has_key_rows"] = not group["shared_query_key"] or \
            content == "routing" and config["routing"]["unused_key_columns"]
        groups.append(group)
        first_head += count
    return groups


def members(group: dict, x: np.ndarray, centroids: np.ndarray, tau: np.ndarray,
            selection: str) -> list[np.ndarray]:
    """The tokens of each cluster of a routed head, ascending."""
    scores, clusters = x @ centroids.T, range(len(tau))
    if selection == "balanced":
        best = np.argsort(-scores, axis=0, kind="stable")[:group["window"]]
        return [np.sort(best[:, cluster]) for cluster in clusters]
    margins = scores - tau
    if selection == "nearest":
        joins = margins.argmax(axis=1)[:, None] == clusters
    else:
        margins = np.where(scores >= tau, margins, -np.inf)
        place = np.argsort(np.argsort(-margins, axis=1, kind="stable"), axis=1)  # of each cluster
        joins = (scores >= tau) & (place < group["max_memberships"])
        alone = ~joins.any(axis=1)
        joins[alone] = scores[alone].argmax(axis=1)[:, None] == clusters
    return [np.flatnonzero(joins[:, cluster]) for cluster in clusters]


def lists_of(group: dict, head: int, q: np.ndarray, k: np.ndarray, tensors: dict, place: dict):
    """What head number `head` of its group attends over: (queries, keys) of each list."""
    kind, pattern, shared = group["kind"], group["pattern"], group["shared_query_key"]
    queries, keys = np.arange(len(q)), np.arange(len(k))
    if pattern == "local" and group["form"] == "block":
        size, after = group["window"], 0 if kind == "decoder" else group["flange"]
        blocks = -(-len(q) // size)
        key_size = max(1, -(-len(k) // blocks)) if kind == "cross" else size
        return [(queries[b * size:(b + 1) * size],
                 keys[max(0, b - group["flange"]) * key_size:(b + 1 + after) * key_size])
                for b in range(blocks)]
    if pattern in ("full", "local", "span"):
        return [(queries, keys)]
    if pattern == "strided":
        return [(queries[r::group["stride"]],) * 2 for r in range(min(group["stride"], len(q)))]
    if pattern == "fixed":
        in_cell = keys % group["stride"]
        return [(queries, keys[in_cell >= group["stride"] - group["summary"]])]
    if pattern == "local2d":
        row, column = queries // 3 // place["image_width"], queries // 3 % place["image_width"]
        rows, columns, lists = group["rows"], group["columns"], []
        for r in range(0, row[-1] + 1, rows):
            for c in range(0, place["image_width"], columns):
                own = (row >= r) & (row < r + rows) & (column >= c) & (column < c + columns)
                around = (row >= r - group["above"]) & (row < r + rows) & \
                    (column >= c - group["beside"]) & (column < c + columns + group["beside"])
                lists.append((queries[own], keys[around]))
        return lists
    if pattern == "random":
        key = stream_key(place["key"], "random pattern evaluation", group["first_head"])
        def draw(side: str, count: int, number: int) -> np.ndarray:
            stream = stream_key(key, f"random pattern {side}", head, number)
            return sample(stream, count, min(group["window"], count))
        of_queries = [draw("queries", len(q), number) for number in range(group["groups"])]
        of_keys = [draw("keys", len(k), number) for number in range(group["groups"])]
        return list(zip(of_queries, of_keys if kind == "cross" else of_queries))
    if pattern == "lsh":
        def buckets(x: np.ndarray) -> list[np.ndarray]:
            turned = [x @ rotation for rotation in tensors["rotations"][head]]  # one for each round
            chosen = [np.concatenate([y, -y], axis=1).argmax(axis=1) for y in turned]
            return [np.flatnonzero(of_round == bucket) for of_round in chosen
                    for bucket in range(group["buckets"])]
        of_queries = buckets(q)
        return list(zip(of_queries, of_queries if shared else buckets(k)))
    clusters = tensors["centroids.centroids"][head], tensors["centroids.tau"][head]
    of_queries = members(group, q, *clusters, group["selection"])
    if shared:
        return list(zip(of_queries, of_queries))
    balanced = kind == "cross" and group["balanced_source"]
    return list(zip(of_queries, members(group, k, *clusters,
                                        "balanced" if balanced else group["selection"])))


# --- Attention over lists -------------------------------------------------------------------------
def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray, lists: list, rule: dict) -> np.ndarray:
    views = []
    for queries, keys in lists:
        place = np.searchsorted(keys, queries, side="right")[:, None]
        rank = np.arange(len(keys))[None, :]
        sees = (rank >= place - rule["lookback"]) & (rank < place + rule["lookahead"])
        if rule["causal"]:
            sees &= keys <= queries[:, None]
        views.append((queries, keys, sees, rank - (place - 1)))
    if rule["self"] == "only_if_alone":
        company = np.zeros(len(q), bool)
        for queries, keys, sees, _ in views:
            company[queries] |= (sees & (keys != queries[:, None])).any(axis=1)
        for queries, keys, sees, _ in views:
            sees &= (keys != queries[:, None]) | ~company[queries][:, None]
    seen = np.zeros((len(q), len(k)), bool)
    for queries, keys, sees, _ in views if rule["once"] else []:
        before = seen[np.ix_(queries, keys)]
        seen[np.ix_(queries, keys)] |= sees
        sees &= ~before
    logits, values = [], []
    for queries, keys, sees, ranks in views:
        offset = ranks if rule["relative"] == "rank" else keys - queries[:, None]
        key = k[keys][None]
        value = v[keys][None]
        if rule["relative"] != "none":
            limit = len(rule["relative_key"]) // 2
            row = np.clip(offset, -limit, limit) + limit
            key, value = key + rule["relative_key"][row], value + rule["relative_value"][row]
        away = queries[:, None] - keys
        score = rule["scale"] * (q[queries][:, None] * key).sum(axis=2) - rule["slope"] * away
        if rule["log_weight"] is not None:
            score = score + rule["log_weight"][np.clip(away, 0, len(rule["log_weight"]) - 1)]
        logits.append(np.where(sees, score, -np.inf))
        values.append(np.broadcast_to(value, (*sees.shape, v.shape[1])))
    result, total, lists_seen = np.zeros((len(q), v.shape[1])), np.zeros(len(q)), np.zeros(len(q))
    peak = np.full(len(q), -np.inf)
    for (queries, *_), logit in zip(views, logits):
        peak[queries] = np.maximum(peak[queries], logit.max(axis=1, initial=-np.inf))
    for (queries, *_), logit, value in zip(views, logits, values):
        highest = peak[queries] if rule["merge"] == "lse" else logit.max(axis=1, initial=-np.inf)
        weight = np.exp(logit - np.where(np.isfinite(highest), highest, 0)[:, None])
        if rule["merge"] == "mean":
            weight /= np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
        lists_seen[queries] += weight.any(axis=1)
        total[queries] += weight.sum(axis=1)
        result[queries] += (weight[:, :, None] * value).sum(axis=1)
    divisor = total if rule["merge"] == "lse" else lists_seen + rule["merge_eps"]
    return result / np.where(lists_seen > 0, divisor, 1)[:, None]


def head_output(group: dict, head: int, rows: tuple[np.ndarray, np.ndarray, np.ndarray],
                own: dict[str, np.ndarray], place: dict[str, int]) -> np.ndarray:
    """What head number `head` of a group makes of its queries, keys and values.

    own      the tensors of the group, by the end of their names
    place    "key" of the layer's random streams, "heads" of the attention, "image_width"
    """
    q, k, v = rows
    dim, pattern, shared = q.shape[1], group["pattern"], group["shared_query_key"]
    if pattern == "routing":
        q = layer_norm(q / math.sqrt(dim) if group["scale_before_norm"] else q)
        k = q if shared else layer_norm(k)
    elif shared:
        length = np.maximum(np.linalg.norm(q, axis=1, keepdims=True), 1e-12)
        k = q / length if pattern == "lsh" else q
    lists = lists_of(group, head, q, k, own, place)
    if group["key_shift"]:
        k = np.concatenate([np.zeros((1, dim)), k[:-1]])
        lists = [(queries, keys[keys + 1 < len(k)] + 1) for queries, keys in lists]
    causal, window, log_weight = group["kind"] == "decoder", math.inf, None
    if pattern == "span":
        ramp, span = group["ramp"], group["limit"] * own["span_share"][0]
        window = min(max(math.ceil(ramp + span), 1), group["limit"])
        reached = np.clip((ramp + span - np.arange(window)) / ramp, 0, 1)
        log_weight = np.log(np.maximum(reached, 1e-300))
    elif group["kind"] != "cross" and (
            pattern == "lsh" or pattern == "local" and group["form"] == "sliding" or
            pattern == "routing" and group["selection"] != "balanced"):
        window = group["window"]
    number = (group["first_head"] + head) % place["heads"] + 1
    steepness = 8 if pattern == "local" else 16
    scale = dim**-0.5 if group["scale"] == "1/sqrt(head_dim)" else float(group["scale"])
    return attend(q, k, v, lists, {
        **{key: group[key] for key in ("self", "merge", "merge_eps", "relative")},
        **{key: own.get(key) for key in ("relative_key", "relative_value")},
        "causal": causal,
        "lookback": window,
        "lookahead": window if window == math.inf else 0 if causal else window - 1,
        "once": pattern == "lsh" and group["rounds"] > 1 and group["merge"] == "lse",
        "slope": 2 ** (-steepness * number / place["heads"]) if group["recency"] else 0,
        "scale": scale * math.exp(own["log_scale"][head] if group["learned_scale"] else 0),
        "log_weight": log_weight})
