#include "bindings.h"
#include "routing/config/experiment.h"
#include "routing/config/words.h"
#include "routing/core/error.h"
#include "routing/core/parallel.h"
#include "routing/kernels/dispatch/onednn_limit.h"
#include "routing/ops/tensor_memory.h"
#include "routing/training/learner.h"

namespace routing::python {
namespace {

// One of ours that Python's own handlers catch as well: `except ValueError` holds both.
PyObject* new_exception(const py::module_& module, const char* name, PyObject* ours, PyObject* pythons) {
  const std::string full = "routing_transformer." + std::string(name);
  PyObject* bases = ours == nullptr ? PyTuple_Pack(1, pythons) : PyTuple_Pack(2, ours, pythons);
  PyObject* made = PyErr_NewException(full.c_str(), bases, nullptr);
  Py_DECREF(bases);
  module.attr(name) = py::reinterpret_borrow<py::object>(made);
  return made;
}

struct Exceptions {
  PyObject *error, *config, *input, *file;
};
Exceptions exceptions{};

}  // namespace

void bind_errors(py::module_& module) {
  exceptions.error = new_exception(module, "Error", nullptr, PyExc_Exception);
  exceptions.config = new_exception(module, "ConfigError", exceptions.error, PyExc_ValueError);
  exceptions.input = new_exception(module, "InputError", exceptions.error, PyExc_ValueError);
  exceptions.file = new_exception(module, "FileError", exceptions.error, PyExc_OSError);
  // NOLINTNEXTLINE(performance-unnecessary-value-param): pybind11 takes this signature and no other
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const ConfigError& error) {
      PyErr_SetString(exceptions.config, error.what());
    } catch (const InputError& error) {
      PyErr_SetString(exceptions.input, error.what());
    } catch (const FileError& error) {
      PyErr_SetString(exceptions.file, error.what());
    } catch (const Error& error) {
      PyErr_SetString(exceptions.error, error.what());
    } catch (const c10::Error& error) {
      PyErr_SetString(PyExc_RuntimeError, error.what_without_backtrace());
    }
  });
}

MatmulPrecision precision_of(const std::string& word) {
  return matmul_precision(parse_word<Precision>(word, "precision"));
}

}  // namespace routing::python

PYBIND11_MODULE(_core, module) {
  using namespace routing::python;
  // Here rather than at the first product: PyTorch's own products go through oneDNN too.
  routing::limit_onednn();
  module.doc() = "The compiled half of routing_transformer; use the package itself.";
  bind_errors(module);
  bind_plans(module);
  bind_attend(module);
  bind_layer(module);
  bind_model(module);
  bind_generation(module);
  module.def("num_threads", &routing::num_threads, "Threads of this package: all cores unless told.");
  module.def("set_num_threads", &routing::set_num_threads, py::arg("threads"),
             "How many threads attention and models of this package use; torch's own are torch.set_num_threads().");
  module.def("reuse_tensor_memory", &routing::reuse_tensor_memory,
             "From now on torch's CPU tensors of a mebibyte and more come from a pool that keeps freed blocks, as in\n"
             "the program `routing`: passes over long sequences need not ask the system for memory again. Holds for\n"
             "the whole process, which then keeps what it has used; call it at the start, or not at all.");
}
