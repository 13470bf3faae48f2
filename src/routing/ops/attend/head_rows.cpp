#include "routing/ops/attend/head_rows.h"

#include "routing/core/error.h"
#include "routing/kernels/pointwise/head_rows.h"
#include "routing/ops/attend/head_tensors.h"
#include "routing/ops/one_derivative.h"

#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace routing {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using OptionalTensor = c10::optional<at::Tensor>;

bool takes_kernels(const at::Tensor& rows) {
  return rows.is_cpu() && rows.scalar_type() == at::kFloat;
}

// ---- groups of heads

variable_list views_of(const at::Tensor& rows, const std::vector<HeadRange>& ranges) {
  variable_list views;
  for (const HeadRange& range : ranges) views.push_back(rows.narrow(1, range.first, range.count).detach());
  return views;
}

class SplitFunction : public torch::autograd::Function<SplitFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& rows, const std::vector<HeadRange>& ranges) {
    std::vector<std::int64_t> numbers{rows.size(1), rows.stride(1) < rows.stride(2) ? 1 : 0};
    for (const HeadRange& range : ranges) numbers.insert(numbers.end(), {range.first, range.count});
    context->saved_data["ranges"] = numbers;
    return views_of(rows, ranges);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    refuse_second_derivative("split_head_groups");
    const std::vector<std::int64_t> numbers = context->saved_data["ranges"].toIntVector();
    const std::int64_t heads = numbers[0];
    at::Tensor some;
    for (const at::Tensor& gradient : gradients) {
      if (gradient.defined()) some = gradient;
    }
    if (!some.defined()) return {at::Tensor(), at::Tensor()};
    const std::vector<std::int64_t> sizes{some.size(0), some.size(2), heads, some.size(3)};
    at::Tensor whole = numbers[1] != 0 ? at::empty(sizes, some.options()).transpose(1, 2)
                                       : at::empty({sizes[0], heads, sizes[1], sizes[3]}, some.options());
    std::int64_t covered = 0;
    for (std::size_t index = 0; index < gradients.size(); ++index) covered += numbers[3 + 2 * index];
    if (covered < heads) whole.zero_();
    for (std::size_t index = 0; index < gradients.size(); ++index) {
      const at::Tensor place = whole.narrow(1, numbers[2 + 2 * index], numbers[3 + 2 * index]);
      const at::Tensor& gradient = gradients[index];
      const at::Tensor from = gradient.defined() ? with_adjacent_numbers(gradient) : gradient;
      kernels::copy_rows(read_rows(from), head_shape(place), written_rows(place));
    }
    return {whole, at::Tensor()};
  }
};

// Groups stand side by side in each token.
at::Tensor merged(at::TensorList groups) {
  std::int64_t heads = 0;
  for (const at::Tensor& group : groups) heads += group.size(2);
  at::Tensor whole = at::empty({groups[0].size(0), groups[0].size(1), heads, groups[0].size(3)}, groups[0].options());
  std::int64_t first = 0;
  for (const at::Tensor& group : groups) {
    const at::Tensor place = whole.narrow(2, first, group.size(2)).transpose(1, 2);
    kernels::copy_rows(read_rows(with_adjacent_numbers(group.transpose(1, 2))), head_shape(place), written_rows(place));
    first += group.size(2);
  }
  return whole;
}

class MergeFunction : public torch::autograd::Function<MergeFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, at::TensorList groups) {
    std::vector<std::int64_t> counts;
    for (const at::Tensor& group : groups) counts.push_back(group.size(2));
    context->saved_data["counts"] = counts;
    return merged(groups);
  }
  // Views: what reads them takes rows with strides.
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    refuse_second_derivative("merge_head_groups");
    variable_list parts;
    std::int64_t first = 0;
    for (const std::int64_t count : context->saved_data["counts"].toIntVector()) {
      parts.push_back(gradients[0].narrow(2, first, count));
      first += count;
    }
    return parts;
  }
};

// ---- queries and keys of the same rows

at::Tensor factors_of(const at::Tensor& log_scale) {
  return log_scale.defined() ? log_scale.exp().contiguous() : log_scale;
}

at::Tensor scaled(const at::Tensor& rows, const at::Tensor& factors) {
  at::Tensor result = empty_heads(rows, rows.size(1), at::kFloat);
  kernels::scale_rows(read_rows(rows), factors.data_ptr<float>(), head_shape(rows), written_rows(result));
  return result;
}

at::Tensor shifted(const at::Tensor& rows) {
  at::Tensor result = empty_heads(rows, rows.size(1), at::kFloat);
  kernels::shift_rows(read_rows(rows), head_shape(rows), written_rows(result));
  return result;
}

class SharedRowsFunction : public torch::autograd::Function<SharedRowsFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& rows, const OptionalTensor& log_scale,
                               bool shift) {
    const at::Tensor factors = factors_of(log_scale.value_or(at::Tensor()));
    const at::Tensor queries = factors.defined() ? scaled(rows, factors) : rows.detach();
    context->save_for_backward({factors.defined() ? rows : at::Tensor(), factors});
    context->saved_data["shift"] = shift;
    return {queries, shift ? shifted(rows) : rows.detach(), rows.detach()};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    refuse_second_derivative("shared_query_key_rows");
    const auto saved = context->get_saved_variables();
    const at::Tensor& rows = saved[0];
    const at::Tensor& factors = saved[1];
    at::Tensor some;
    for (at::Tensor& gradient : gradients) {
      if (!gradient.defined()) continue;
      gradient = with_adjacent_numbers(gradient);
      some = gradient;
    }
    if (!some.defined()) return {at::Tensor(), at::Tensor(), at::Tensor()};
    at::Tensor d_rows = empty_heads(some, some.size(1), at::kFloat);
    kernels::SharedRowsGradient sums{.scaled = read_rows(gradients[0]),
                                     .moved = read_rows(gradients[1]),
                                     .rows = read_rows(gradients[2]),
                                     .factors = factors.defined() ? factors.data_ptr<float>() : nullptr,
                                     .shift = context->saved_data["shift"].toBool() ? 1 : 0};
    kernels::shared_rows_gradient(sums, head_shape(some), written_rows(d_rows));
    at::Tensor d_log_scale;
    if (factors.defined() && gradients[0].defined()) {
      d_log_scale = at::empty_like(factors);
      kernels::head_products(read_rows(gradients[0]), read_rows(rows), head_shape(some), d_log_scale.data_ptr<float>());
      d_log_scale.mul_(factors);
    }
    return {d_rows, d_log_scale, at::Tensor()};
  }
};

SharedRows shared_rows_of_tensors(const at::Tensor& rows, const at::Tensor& log_scale, bool shift) {
  SharedRows result{.queries = rows, .keys = rows, .rows = rows};
  if (log_scale.defined()) result.queries = rows * log_scale.exp().view({1, -1, 1, 1});
  if (shift) {
    const at::Tensor none =
        at::zeros({rows.size(0), rows.size(1), 1, rows.size(3)}, rows.options().requires_grad(false));
    result.keys = at::cat({none, rows.narrow(2, 0, rows.size(2) - 1)}, 2);
  }
  return result;
}

}  // namespace

std::vector<at::Tensor> split_head_groups(const at::Tensor& rows, const std::vector<HeadRange>& ranges) {
  for (const HeadRange& range : ranges) {
    require<InputError>(
        rows.dim() == 4 && range.first >= 0 && range.count >= 0 && range.first + range.count <= rows.size(1),
        "split_head_groups: heads ", range.first, " to ", range.first + range.count, " of rows ", rows.sizes());
  }
  const bool whole = ranges.size() == 1 && ranges[0].first == 0 && ranges[0].count == rows.size(1);
  if (whole) return {rows};
  if (at::GradMode::is_enabled() && takes_kernels(rows)) return SplitFunction::apply(rows, ranges);
  std::vector<at::Tensor> groups;
  for (const HeadRange& range : ranges) groups.push_back(rows.narrow(1, range.first, range.count));
  return groups;
}

at::Tensor merge_head_groups(const std::vector<at::Tensor>& groups) {
  require<InputError>(!groups.empty(), "merge_head_groups: no groups were given");
  if (groups.size() == 1) return groups[0];
  if (!takes_kernels(groups[0])) return at::cat(groups, 2);
  return at::GradMode::is_enabled() ? MergeFunction::apply(at::TensorList(groups)) : merged(groups);
}

SharedRows shared_query_key_rows(const at::Tensor& rows, const at::Tensor& log_scale, bool shift) {
  require<InputError>(rows.dim() == 4, "shared_query_key_rows: rows are ", rows.sizes(),
                      ", but must be [batch, heads, tokens, dim]");
  require<InputError>(!log_scale.defined() || (log_scale.dim() == 1 && log_scale.size(0) == rows.size(1)),
                      "shared_query_key_rows: log_scale is ", log_scale.defined() ? log_scale.sizes() : rows.sizes(),
                      ", but must be [", rows.size(1), "]");
  if (!log_scale.defined() && !shift) return {rows, rows, rows};
  if (!takes_kernels(rows)) return shared_rows_of_tensors(rows, log_scale, shift);
  const at::Tensor adjacent = with_adjacent_numbers(rows);
  if (at::GradMode::is_enabled()) {
    const variable_list results =
        SharedRowsFunction::apply(adjacent, log_scale.defined() ? OptionalTensor(log_scale) : c10::nullopt, shift);
    return {results[0], results[1], results[2]};
  }
  return {log_scale.defined() ? scaled(adjacent, factors_of(log_scale)) : adjacent,
          shift ? shifted(adjacent) : adjacent, adjacent};
}

}  // namespace routing
