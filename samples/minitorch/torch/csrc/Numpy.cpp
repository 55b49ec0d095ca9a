#include <torch/csrc/Numpy.h>

#include <cstring>

#include <c10/macros/cmake_macros.h>
#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Tensor.h>

namespace torch {
namespace {

void require_numpy() {
#ifndef C10_USE_NUMPY
  c10::fail({"PyTorch was compiled without NumPy support"});
#endif
}

// What a Py_buffer points to while somebody holds it.
struct Layout {
  Py_ssize_t shape[at::Sizes::kMost], strides[at::Sizes::kMost];
};

Layout* layout_of(const at::Tensor& tensor) {
  auto* layout = new Layout;
  Py_ssize_t stride = sizeof(double);
  for (std::size_t i = tensor.sizes().size(); i-- > 0; stride *= layout->shape[i]) {
    layout->shape[i] = tensor.sizes()[i];
    layout->strides[i] = stride;
  }
  return layout;
}

void release_borrowed(Py_buffer* view) {
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyBuffer_Release(view);
  PyGILState_Release(gil);
  delete view;
}

PyObject* from_numpy(PyObject*, PyObject* array) {
  return guarded([&] {
    require_numpy();
    auto* view = new Py_buffer{};
    if (PyObject_GetBuffer(array, view, PyBUF_WRITABLE | PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
      delete view;
      throw PythonError();
    }
    const c10::DataPtr data(view->buf, view, [](void* held) { release_borrowed(static_cast<Py_buffer*>(held)); });
    TORCH_CHECK(std::strcmp(view->format, c10::buffer_format(c10::ScalarType::Double)) == 0,
                "from_numpy supports float64 only here, got format '", view->format, "'");
    return wrap(at::Tensor(at::Sizes(view->shape, view->shape + view->ndim), data));
  });
}

}  // namespace

PyObject* tensor_to_numpy(PyObject* self, PyObject*) {
  return guarded([&] {
    require_numpy();
    const PyRef numpy = own(PyImport_ImportModule("numpy"));
    return own(PyObject_CallMethod(numpy.get(), "asarray", "O", self)).release();
  });
}

int tensor_get_buffer(PyObject* self, Py_buffer* view, int) {
  PyObject* done = guarded([&]() -> PyObject* {
    require_numpy();
    const at::Tensor& tensor = unwrap(self);
    Layout* layout = layout_of(tensor);
    *view = Py_buffer{};
    view->buf = tensor.data();
    view->len = tensor.numel() * static_cast<Py_ssize_t>(sizeof(double));
    view->itemsize = sizeof(double);
    view->format = const_cast<char*>(c10::buffer_format(tensor.scalar_type()));
    view->ndim = static_cast<int>(tensor.dim());
    view->shape = layout->shape;
    view->strides = layout->strides;
    view->internal = layout;
    Py_INCREF(self);
    return view->obj = self;
  });
  return done ? 0 : -1;
}

void tensor_release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Layout*>(view->internal); }

PyMethodDef numpy_functions[] = {
    {"from_numpy", from_numpy, METH_O, "from_numpy(ndarray): a Tensor on the same memory"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace torch
