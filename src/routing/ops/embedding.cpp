#include "routing/ops/embedding.h"

#include "routing/core/error.h"
#include "routing/kernels/pointwise/embedding_gradient.h"
#include "routing/ops/one_derivative.h"

#include <torch/csrc/autograd/custom_function.h>

#include <vector>

namespace routing {
namespace {

void check_call(const at::Tensor& ids, const at::Tensor& table) {
  require<InputError>(ids.scalar_type() == at::kLong, "embedding: ids hold ", ids.scalar_type(),
                      ", but must hold Long");
  require<InputError>(table.dim() == 2 && (table.scalar_type() == at::kFloat || table.scalar_type() == at::kDouble),
                      "embedding: table is ", table.scalar_type(), " ", table.sizes(),
                      ", but must be Float or Double [rows, width]");
  require<InputError>(ids.device() == table.device(), "embedding: ids are on ", ids.device().str(), " and table on ",
                      table.device().str(), "; move one of them");
  if (ids.is_meta()) return;
  const at::Tensor flat = ids.cpu().contiguous();
  const auto* id = flat.data_ptr<std::int64_t>();
  for (std::int64_t position = 0; position < flat.numel(); ++position) {
    require<InputError>(id[position] >= 0 && id[position] < table.size(0), "embedding: id ", id[position],
                        " at position ", position, ", but the table has ", table.size(0), " rows (ids 0 to ",
                        table.size(0) - 1, ")");
  }
}

class EmbeddingFunction : public torch::autograd::Function<EmbeddingFunction> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& ids, const at::Tensor& table) {
    context->save_for_backward({ids});
    context->saved_data["rows"] = table.size(0);
    // Torch 1.13 has no index_select without values.
    if (table.is_meta()) return at::empty({ids.size(0), table.size(1)}, table.options());
    return table.index_select(0, ids);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    refuse_second_derivative("embedding");
    const at::Tensor ids = context->get_saved_variables()[0];
    const at::Tensor d_output = gradients[0].contiguous();
    const kernels::LookupShape shape{
        .count = ids.size(0), .width = d_output.size(1), .table_rows = context->saved_data["rows"].toInt()};
    if (d_output.is_meta()) return {at::Tensor(), at::empty({shape.table_rows, shape.width}, d_output.options())};
    if (!d_output.device().is_cpu()) {
      return {at::Tensor(),
              at::zeros({shape.table_rows, shape.width}, d_output.options()).index_add_(0, ids, d_output)};
    }
    at::Tensor d_table = at::empty({shape.table_rows, shape.width}, d_output.options());
    AT_DISPATCH_FLOATING_TYPES(d_output.scalar_type(), "embedding", [&] {
      kernels::embedding_gradient(ids.data_ptr<std::int64_t>(), d_output.data_ptr<scalar_t>(), shape,
                                  d_table.data_ptr<scalar_t>());
    });
    return {at::Tensor(), d_table};
  }
};

}  // namespace

at::Tensor embedding(const at::Tensor& ids, const at::Tensor& table) {
  check_call(ids, table);
  std::vector<std::int64_t> sizes = ids.sizes().vec();
  sizes.push_back(table.size(1));
  return EmbeddingFunction::apply(ids.reshape({-1}).contiguous(), table).view(sizes);
}

}  // namespace routing
