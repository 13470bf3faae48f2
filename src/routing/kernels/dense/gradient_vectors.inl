// Registers of float32 for gradient_tiles.inl. The includer defines ROUTING_VECTOR_BYTES. Vectors in memory need no
// alignment.

constexpr std::int64_t kWidth = ROUTING_VECTOR_BYTES / 4;
using Vector = float __attribute__((vector_size(ROUTING_VECTOR_BYTES)));
using MemoryVector = float __attribute__((vector_size(ROUTING_VECTOR_BYTES), aligned(4), may_alias));

inline Vector load(const float* from) {
  return *reinterpret_cast<const MemoryVector*>(from);
}
inline void store(float* to, Vector values) {
  *reinterpret_cast<MemoryVector*>(to) = values;
}
