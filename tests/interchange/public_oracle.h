// A RoutingTransformerLM of lucidrains' routing-transformer 1.6 in plain loops and doubles, straight from its
// state_dict: what that program computes in evaluation, written again from reading it. Knows nothing of our layers.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace routing {

struct PublicShape {
  std::int64_t depth = 0, heads = 0, dim_head = 0, local_window = 0, radius = 1, window = 0;
  bool relu = false;
};

class PublicOracle {
 public:
  PublicOracle(std::map<std::string, at::Tensor> state, const PublicShape& shape)
      : state_(std::move(state)), shape_(shape) {}

  // [n] -> [n, vocabulary]; row i predicts the token after token i.
  at::Tensor logits(const at::Tensor& tokens) const {
    at::Tensor x = get("token_emb.weight").index_select(0, tokens);
    for (std::int64_t layer = 0; layer < shape_.depth; ++layer) {
      const std::string scope = "routing_transformer.layers.layers." + std::to_string(layer) + ".";
      x = x + attention(norm(x, scope + "0.norm."), scope + "0.fn.");
      const at::Tensor hidden = linear(norm(x, scope + "1.norm."), scope + "1.fn.fn.w1");
      x = x + linear(shape_.relu ? at::relu(hidden) : gelu(hidden), scope + "1.fn.fn.w2");
    }
    x = norm(x, "norm.");
    return has("out.tensor") ? at::matmul(x, get("token_emb.weight").t()) : linear(x, "out");
  }

 private:
  bool has(const std::string& name) const { return state_.count(name) == 1; }
  at::Tensor get(const std::string& name) const { return state_.at(name).to(at::kDouble); }
  static at::Tensor gelu(const at::Tensor& x) { return x * 0.5 * (1.0 + at::erf(x / std::sqrt(2.0))); }
  at::Tensor linear(const at::Tensor& x, const std::string& scope) const {
    return at::matmul(x, get(scope + ".weight").t()) + get(scope + ".bias");
  }
  at::Tensor norm(const at::Tensor& x, const std::string& scope) const {
    const at::Tensor centred = x - x.mean(-1, true);
    const at::Tensor plain = centred / (centred.square().mean(-1, true) + 1e-5).sqrt();
    return plain * get(scope + "weight") + get(scope + "bias");
  }
  double angle(std::int64_t position, std::int64_t pair) const {
    return static_cast<double>(position) *
           std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(shape_.dim_head));
  }
  // Numbers `first` and `second` of every row [n, dim_head] turn as a pair.
  void turn(at::Tensor& rows, std::int64_t pair, std::int64_t first, std::int64_t second) const {
    for (std::int64_t position = 0; position < rows.size(0); ++position) {
      const double a = rows[position][first].item<double>();
      const double b = rows[position][second].item<double>();
      const double angle_here = angle(position, pair);
      rows[position][first] = a * std::cos(angle_here) - b * std::sin(angle_here);
      rows[position][second] = b * std::cos(angle_here) + a * std::sin(angle_here);
    }
  }
  at::Tensor turned_halves(at::Tensor rows) const {
    rows = rows.clone();
    const std::int64_t half = shape_.dim_head / 2;
    for (std::int64_t pair = 0; pair < half; ++pair) turn(rows, pair, pair, pair + half);
    return rows;
  }
  at::Tensor turned_neighbours(at::Tensor rows) const {
    rows = rows.clone();
    for (std::int64_t pair = 0; pair < shape_.dim_head / 2; ++pair) turn(rows, pair, 2 * pair, 2 * pair + 1);
    return rows;
  }
  double scale() const { return 1.0 / std::sqrt(static_cast<double>(shape_.dim_head)); }

  at::Tensor local(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool rotary) const {
    const at::Tensor queries = rotary ? turned_halves(q) : q;
    const at::Tensor keys = rotary ? turned_halves(k) : k;
    std::vector<at::Tensor> rows;
    for (std::int64_t place = 0; place < q.size(0); ++place) {
      const std::int64_t block = place / shape_.local_window - shape_.radius;
      const std::int64_t first = std::max<std::int64_t>(0, block * shape_.local_window);
      const at::Tensor weights = at::softmax(at::matmul(keys.slice(0, first, place + 1), queries[place]) * scale(), 0);
      rows.push_back(at::matmul(weights, v.slice(0, first, place + 1)));
    }
    return at::stack(rows);
  }

  at::Tensor routed(const at::Tensor& q, const at::Tensor& v, const at::Tensor& means) const {
    const at::Tensor queries = turned_neighbours(q);
    const at::Tensor values = turned_neighbours(v);
    const at::Tensor keys = queries / queries.norm(2, {1}, true).clamp_min(1e-12);
    const std::int64_t n = q.size(0);
    at::Tensor sum = at::zeros_like(v);
    at::Tensor count = at::zeros({n, 1}, at::kDouble);
    for (std::int64_t cluster = 0; cluster < means.size(0); ++cluster) {
      const at::Tensor scores = at::matmul(keys, means[cluster]);
      const at::Tensor members = std::get<1>(scores.topk(std::min(shape_.window, n)));
      for (std::int64_t member = 0; member < members.size(0); ++member) {
        const std::int64_t place = members[member].item<std::int64_t>();
        std::vector<std::int64_t> seen;
        for (std::int64_t other = 0; other < members.size(0); ++other) {
          const std::int64_t key = members[other].item<std::int64_t>();
          if (key < place) seen.push_back(key);
        }
        if (seen.empty()) seen.push_back(place);
        const at::Tensor read = at::tensor(seen, at::kLong);
        const at::Tensor weights = at::softmax(at::matmul(keys.index_select(0, read), queries[place]) * scale(), 0);
        sum[place] += at::matmul(weights, values.index_select(0, read));
        count[place] += 1.0;
      }
    }
    return sum / (count + 1e-5);
  }

  at::Tensor attention(const at::Tensor& x, const std::string& scope) const {
    const auto split = [&](const at::Tensor& rows) { return rows.view({x.size(0), -1, shape_.dim_head}); };
    std::vector<at::Tensor> heads;
    if (has(scope + "local_to_qkv.weight")) {
      const auto qkv = linear(x, scope + "local_to_qkv").chunk(3, 1);
      const at::Tensor q = split(qkv[0].contiguous()), k = split(qkv[1].contiguous()), v = split(qkv[2].contiguous());
      for (std::int64_t head = 0; head < q.size(1); ++head) {
        heads.push_back(
            local(q.select(1, head), k.select(1, head), v.select(1, head), has(scope + "local_attn.rel_pos.inv_freq")));
      }
    }
    if (has(scope + "global_attn.kmeans.means")) {
      const at::Tensor q = split(at::matmul(x, get(scope + "to_q.weight").t()));
      const at::Tensor v = split(at::matmul(x, get(scope + "to_v.weight").t()));
      const at::Tensor means = get(scope + "global_attn.kmeans.means");
      for (std::int64_t head = 0; head < q.size(1); ++head) {
        heads.push_back(routed(q.select(1, head), v.select(1, head), means[head]));
      }
    }
    return at::matmul(at::cat(heads, 1), get(scope + "to_out.weight").t());
  }

  std::map<std::string, at::Tensor> state_;
  PublicShape shape_;
};

}  // namespace routing
