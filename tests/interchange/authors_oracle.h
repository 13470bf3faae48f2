// The authors' language model in plain tensor code and doubles, straight from variables by their names: what their code
// computes, written again from docs/facts.md A1 to A12, B1 and C1 to C6. Knows nothing of our layers.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace routing {

struct AuthorsShape {
  std::int64_t layers = 0, heads = 0, dim = 0, block = 0, window = 0;
};

class AuthorsOracle {
 public:
  AuthorsOracle(std::map<std::string, at::Tensor> variables, const AuthorsShape& shape)
      : variables_(std::move(variables)), shape_(shape) {}

  // [n] -> [n, vocabulary]; row i predicts token i.
  at::Tensor logits(const at::Tensor& tokens) const {
    const at::Tensor shifted = at::cat({at::zeros({1}, at::kLong), tokens.slice(0, 0, -1)});
    at::Tensor x = dense(variable("embeddings/embedding").index_select(0, shifted), "emb_dense");
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
      const std::string scope = "decoder_layer_" + std::to_string(layer) + "/self_attention/";
      x = norm(x + attention(x, scope + "self_attention/"), scope + "layer_postprocess/layer_norm/layer_norm_");
      x = norm(x + feedforward(x, scope + "ffn/"), scope + "layer_postprocess_1/layer_norm/layer_norm_");
    }
    if (has("final_dense_1/kernel")) x = dense(x, "final_dense_1");
    return dense(x, "final_dense_2");
  }

 private:
  bool has(const std::string& name) const { return variables_.count("sparse_transformer/body/" + name) == 1; }
  at::Tensor variable(const std::string& name) const {
    return variables_.at("sparse_transformer/body/" + name).to(at::kDouble);
  }
  at::Tensor dense(const at::Tensor& x, const std::string& scope) const {
    return at::matmul(x, variable(scope + "/kernel")) + variable(scope + "/bias");
  }
  static at::Tensor plain_norm(const at::Tensor& x) {
    const at::Tensor centred = x - x.mean(-1, true);
    return centred / (centred.square().mean(-1, true) + 1e-6).sqrt();
  }
  at::Tensor norm(const at::Tensor& x, const std::string& scope) const {
    return plain_norm(x) * variable(scope + "scale") + variable(scope + "bias");
  }
  at::Tensor feedforward(const at::Tensor& x, const std::string& scope) const {
    if (has(scope + "conv1/kernel")) return dense(at::relu(dense(x, scope + "conv1")), scope + "conv2");
    const at::Tensor gate = at::matmul(x, variable(scope + "weight1/kernel"));
    const at::Tensor gelu = 0.5 * gate * (1.0 + at::tanh(0.7978845608028654 * (gate + 0.044715 * gate.pow(3))));
    return at::matmul(gelu * at::matmul(x, variable(scope + "weight2/kernel")), variable(scope + "weight3/kernel"));
  }

  // One query over some keys, with relative tables by the difference of their places.
  struct Table {
    at::Tensor keys, values;
  };
  Table table(const std::string& scope) const {
    if (!has(scope + "relative_positions_keys/embeddings")) return {};
    return {variable(scope + "relative_positions_keys/embeddings"),
            variable(scope + "relative_positions_values/embeddings")};
  }
  static at::Tensor read(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values, const Table& table,
                         const std::vector<std::int64_t>& offsets) {
    at::Tensor k = keys;
    at::Tensor v = values;
    if (table.keys.defined()) {
      const std::int64_t limit = table.keys.size(0) / 2;
      const at::Tensor rows = at::tensor(offsets, at::kLong).clamp(-limit, limit) + limit;
      k = k + table.keys.index_select(0, rows);
      v = v + table.values.index_select(0, rows);
    }
    return at::matmul(at::softmax(at::matmul(k, query), 0), v);
  }

  at::Tensor routed(const at::Tensor& q, const at::Tensor& v, const at::Tensor& means, const Table& relative) const {
    const std::int64_t n = q.size(0);
    const at::Tensor x = plain_norm(q);
    // Equal tokens have equal scores in the lowest layer, whatever the last bits say; the earlier ones then win.
    const at::Tensor scores = at::round(at::matmul(x, means.t()) * 1e9);
    at::Tensor sum = at::zeros_like(v);
    at::Tensor count = at::zeros({n, 1}, at::kDouble);
    for (std::int64_t cluster = 0; cluster < means.size(0); ++cluster) {
      const at::Tensor order = std::get<1>(scores.select(1, cluster).sort(/*stable=*/true, 0, /*descending=*/true));
      const at::Tensor members = std::get<0>(order.slice(0, 0, std::min(shape_.window, n)).sort());
      for (std::int64_t rank = 0; rank < members.size(0); ++rank) {
        const at::Tensor seen = members.slice(0, 0, rank + 1);
        std::vector<std::int64_t> offsets;
        for (std::int64_t other = 0; other <= rank; ++other) offsets.push_back(other - rank);
        const std::int64_t place = members[rank].item<std::int64_t>();
        sum[place] += read(x[place], x.index_select(0, seen), v.index_select(0, seen), relative, offsets);
        count[place] += 1.0;
      }
    }
    return sum / (count + 0.01);
  }

  at::Tensor local(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Table& relative) const {
    std::vector<at::Tensor> rows;
    for (std::int64_t place = 0; place < q.size(0); ++place) {
      const std::int64_t first = std::max<std::int64_t>(0, (place / shape_.block - 1) * shape_.block);
      std::vector<std::int64_t> offsets;
      for (std::int64_t other = first; other <= place; ++other) offsets.push_back(other - place);
      rows.push_back(read(q[place], k.slice(0, first, place + 1), v.slice(0, first, place + 1), relative, offsets));
    }
    return at::stack(rows);
  }

  at::Tensor attention(const at::Tensor& x, const std::string& scope) const {
    const auto split = [&](const char* name) {
      return at::matmul(x, variable(scope + name + "/kernel")).view({x.size(0), shape_.heads, shape_.dim});
    };
    const at::Tensor q = split("q") / std::sqrt(static_cast<double>(shape_.dim));
    const at::Tensor k = split("k");
    const at::Tensor v = split("v");
    const std::string inner = scope + "attention_nd/";
    const std::string clusters = inner + "cluster_attention/cluster_attention/";
    const at::Tensor means = has(clusters + "means") ? variable(clusters + "means") : at::zeros({0});
    std::vector<at::Tensor> heads;
    for (std::int64_t head = 0; head < shape_.heads; ++head) {
      const auto of_head = [&](const at::Tensor& all) { return all.select(1, head); };
      const at::Tensor output = head < means.size(0)
                                    ? routed(of_head(q), of_head(v), means[head], table(clusters))
                                    : local(of_head(q), of_head(k), of_head(v), table(inner + "local_nd/"));
      heads.push_back(at::matmul(output, variable(inner + "dense/kernel")));
    }
    return at::matmul(at::cat(heads, 1), variable(scope + "output_transform/kernel"));
  }

  std::map<std::string, at::Tensor> variables_;
  AuthorsShape shape_;
};

}  // namespace routing
