#include "routing/kernels/dense/dense_primitives.h"

#include "routing/kernels/dispatch/onednn_limit.h"
#include "routing/kernels/pointwise/bfloat16.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <omp.h>
#include <utility>

namespace routing::kernels {
namespace {

using dnnl::memory;

// Shapes are few (one or two per weight), but callers may come with ever new numbers of rows.
constexpr std::size_t kMostMatmuls = 4096;

// oneDNN 3 takes a matrix of one row or column for a vector without gaps. Seen in 3.7.2 with AVX-512: outputs of one
// column are written side by side (mended in 3.10), and a transposed left factor of one row is read side by side. Such
// vectors are handed over without gaps, through scratch memory.
constexpr bool kGapsOfVectorsAreLost = DNNL_VERSION_MAJOR >= 3;

bool left_has_gaps(const MatmulKey& key) {
  return kGapsOfVectorsAreLost && key.rows == 1 && key.left_transposed && key.left_stride != 1;
}
bool outputs_have_gaps(const MatmulKey& key) {
  return kGapsOfVectorsAreLost && key.columns == 1 && key.output_stride != 1;
}

std::shared_ptr<const Matmul> make_matmul(const MatmulKey& key) {
  const OneThread one_thread;
  const auto factor_type =
      key.type == DenseType::bf16 && multiplies_bfloat16() ? memory::data_type::bf16 : memory::data_type::f32;
  const memory::dims left_strides = key.left_transposed ? memory::dims{1, left_has_gaps(key) ? 1 : key.left_stride}
                                                        : memory::dims{key.left_stride, 1};
  const memory::desc left({key.rows, key.depth}, factor_type, left_strides);
  const memory::dims right_dims{key.depth, key.columns};
  const memory::desc right = key.right_stride == 0
                                 ? memory::desc(right_dims, factor_type, memory::format_tag::any)
                                 : memory::desc(right_dims, factor_type, memory::dims{key.right_stride, 1});
  const memory::desc outputs({key.rows, key.columns}, memory::data_type::f32,
                             memory::dims{outputs_have_gaps(key) ? 1 : key.output_stride, 1});
  const memory::desc bias({1, key.columns}, memory::data_type::f32, memory::format_tag::ab);
  dnnl::primitive_attr attributes;
  // Scratch memory of the library's own would be shared by threads it does not know of.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops post_ops;
  if (key.accumulate) post_ops.append_sum(1.0F);
#if DNNL_VERSION_MAJOR >= 3
  if (key.relu) post_ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
  attributes.set_post_ops(post_ops);
  auto description = key.bias ? dnnl::matmul::primitive_desc(cpu_engine(), left, right, bias, outputs, attributes)
                              : dnnl::matmul::primitive_desc(cpu_engine(), left, right, outputs, attributes);
#else
  if (key.relu) post_ops.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
  attributes.set_post_ops(post_ops);
  const auto operation =
      key.bias ? dnnl::matmul::desc(left, right, bias, outputs) : dnnl::matmul::desc(left, right, outputs);
  auto description = dnnl::matmul::primitive_desc(operation, attributes, cpu_engine());
#endif
  dnnl::matmul primitive(description);
  return std::make_shared<const Matmul>(Matmul{key, std::move(description), std::move(primitive)});
}

}  // namespace

std::size_t MatmulKeyHash::operator()(const MatmulKey& key) const {
  std::size_t hash = 0;
  for (const std::int64_t part : {key.rows, key.depth, key.columns, static_cast<std::int64_t>(key.type),
                                  key.left_stride, key.right_stride, key.output_stride}) {
    hash = hash * 1000003U + std::hash<std::int64_t>()(part);
  }
  const int flags = key.left_transposed + 2 * key.bias + 4 * key.relu + 8 * key.accumulate;
  return hash * 1000003U + static_cast<std::size_t>(flags);
}

OneThread::OneThread() : threads_before_(omp_get_max_threads()) {
  omp_set_num_threads(1);
}
OneThread::~OneThread() {
  omp_set_num_threads(threads_before_);
}

void* Scratch::at_least(std::size_t bytes) {
  if (bytes > size_ || !memory_) {
    memory_.reset();
    memory_.reset(::operator new (bytes, std::align_val_t{64}));
    size_ = bytes;
  }
  return memory_.get();
}

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine = [] {
    limit_onednn();
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

bool multiplies_bfloat16() {
  static const bool native = [] {
    if (onednn_would_crash_on_tiles()) return false;
    const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
    constexpr auto kWanted = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
    return (isa & kWanted) == kWanted;
  }();
  return native;
}

std::int64_t element_bytes(DenseType type) {
  return type == DenseType::bf16 && multiplies_bfloat16() ? 2 : 4;
}

std::shared_ptr<const Matmul> matmul_for(const MatmulKey& key) {
  static std::mutex mutex;
  static std::unordered_map<MatmulKey, std::shared_ptr<const Matmul>, MatmulKeyHash> matmuls;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = matmuls.find(key); found != matmuls.end()) return found->second;
  }
  auto made = make_matmul(key);
  const std::lock_guard lock(mutex);
  if (matmuls.size() >= kMostMatmuls) matmuls.clear();
  return matmuls.emplace(key, std::move(made)).first->second;
}

MatmulRun::MatmulRun(std::shared_ptr<const Matmul> matmul, Scratch& scratchpad)
    : matmul_(std::move(matmul)),
      stream_(cpu_engine()),
      left_(matmul_->description.src_desc(), cpu_engine(), nullptr),
      right_(matmul_->description.weights_desc(), cpu_engine(), nullptr),
      outputs_(matmul_->description.dst_desc(), cpu_engine(), nullptr) {
  const MatmulKey& key = matmul_->key;
  const memory::desc scratch = matmul_->description.scratchpad_desc();
  constexpr std::int64_t kLine = 64;
  const auto whole_lines = [](std::int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; };
  const std::int64_t left_bytes = left_has_gaps(key) ? whole_lines(key.depth * element_bytes(key.type)) : 0;
  const std::int64_t output_bytes = outputs_have_gaps(key) ? whole_lines(key.rows * std::int64_t{sizeof(float)}) : 0;
  const auto own_bytes = static_cast<std::int64_t>(scratch.get_size());
  char* memory_of_run = scratchpad.get<char>(std::max<std::int64_t>(1, left_bytes + output_bytes + own_bytes));
  if (left_bytes > 0) dense_left_ = memory_of_run;
  if (output_bytes > 0) dense_outputs_ = reinterpret_cast<float*>(memory_of_run + left_bytes);
  char* workspace = memory_of_run + left_bytes + output_bytes;
  arguments_ = {{DNNL_ARG_SRC, left_},
                {DNNL_ARG_WEIGHTS, right_},
                {DNNL_ARG_DST, outputs_},
                {DNNL_ARG_SCRATCHPAD, memory(scratch, cpu_engine(), workspace)}};
}

// oneDNN's interface takes pointers to data it only reads as pointers to data it may write.
void MatmulRun::set_bias(const float* bias) {
  arguments_.insert_or_assign(DNNL_ARG_BIAS,
                              memory(matmul_->description.bias_desc(), cpu_engine(), const_cast<float*>(bias)));
}

void MatmulRun::operator()(const void* left, const memory& right, float* outputs) {
  const MatmulKey& key = matmul_->key;
  if (dense_left_ != nullptr) {
    const std::int64_t bytes = element_bytes(key.type);
    for (std::int64_t k = 0; k < key.depth; ++k) {
      std::memcpy(dense_left_ + k * bytes, static_cast<const char*>(left) + k * key.left_stride * bytes,
                  static_cast<std::size_t>(bytes));
    }
    left = dense_left_;
  }
  if (dense_outputs_ != nullptr && key.accumulate) {
    for (std::int64_t row = 0; row < key.rows; ++row) dense_outputs_[row] = outputs[row * key.output_stride];
  }
  left_.set_data_handle(const_cast<void*>(left));
  outputs_.set_data_handle(dense_outputs_ != nullptr ? dense_outputs_ : outputs);
  arguments_.at(DNNL_ARG_WEIGHTS) = right;
  matmul_->primitive.execute(stream_, arguments_);
  if (dense_outputs_ != nullptr) {
    for (std::int64_t row = 0; row < key.rows; ++row) outputs[row * key.output_stride] = dense_outputs_[row];
  }
}

void MatmulRun::operator()(const void* left, const void* right, float* outputs) {
  right_.set_data_handle(const_cast<void*>(right));
  (*this)(left, right_, outputs);
}

const void* convert_rows(const LeftRows& source, DenseType type, Scratch& scratch) {
  const std::int64_t count = source.num_rows * source.width;
  const std::int64_t filled = source.filled_rows * source.width;
  const auto [floats, halves] = source.rows;
  const std::int64_t bytes = element_bytes(type);
  const bool wants_halves = bytes == 2;
  if (count == filled && wants_halves && halves != nullptr) return halves;
  if (count == filled && type == DenseType::fp32 && floats != nullptr) return floats;
  auto* copy = scratch.get<char>(filled * bytes);
  auto* copied_floats = reinterpret_cast<float*>(copy);
  auto* copied_halves = reinterpret_cast<std::uint16_t*>(copy);
  if (halves != nullptr) {
    if (wants_halves) {
      std::memcpy(copy, halves, static_cast<std::size_t>(count * bytes));
    } else {
      from_bfloat16(halves, count, copied_floats);
    }
  } else if (wants_halves) {
    to_bfloat16(floats, count, copied_halves);
  } else if (type == DenseType::bf16) {
    round_to_bfloat16(floats, count, copied_floats);
  } else {
    std::memcpy(copy, floats, static_cast<std::size_t>(count * bytes));
  }
  std::memset(copy + count * bytes, 0, static_cast<std::size_t>((filled - count) * bytes));
  return copy;
}

}  // namespace routing::kernels
