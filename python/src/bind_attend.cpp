// Attention over a plan.
#include "bindings.h"
#include "routing/ops/attend/attend.h"

namespace routing::python {

void bind_attend(py::module_& module) {
  module.def(
      "attend",
      [](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Plan& plan, double scale,
         const std::string& merge, double merge_eps, const std::string& relative,
         const std::optional<at::Tensor>& relative_key, const std::optional<at::Tensor>& relative_value,
         const std::optional<at::Tensor>& recency, double dropout, std::uint64_t dropout_key,
         const std::string& precision) {
        const AttendOptions options{.scale = scale,
                                    .merge = parse_word<Merge>(merge, "merge"),
                                    .merge_eps = merge_eps,
                                    .relative = parse_word<RelativePosition>(relative, "relative"),
                                    .relative_key = tensor_or_none(relative_key),
                                    .relative_value = tensor_or_none(relative_value),
                                    .recency = tensor_or_none(recency),
                                    .dropout = {.probability = dropout, .key = dropout_key},
                                    .precision = precision_of(precision)};
        const py::gil_scoped_release others_may_run;
        AttendResult result = attend(q, k, v, plan, options);
        return std::pair(std::move(result.output), std::move(result.lse));
      },
      py::arg("q"), py::arg("k"), py::arg("v"), py::arg("plan"), py::arg("scale"), py::arg("merge"),
      py::arg("merge_eps"), py::arg("relative"), py::arg("relative_key"), py::arg("relative_value"), py::arg("recency"),
      py::arg("dropout"), py::arg("dropout_key"), py::arg("precision"));
}

}  // namespace routing::python
