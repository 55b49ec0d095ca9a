// torch.Tensor for Python.
#include <torch/csrc/Tensor.h>

#include <new>

#include <ATen/Functions.h>
#include <torch/csrc/Convert.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Numpy.h>
#include <torch/csrc/Ops.h>

namespace torch {
namespace {

struct PyTensor {
  PyObject_HEAD
  at::Tensor value;
};

PyTypeObject* type = nullptr;

void dealloc(PyObject* self) {
  reinterpret_cast<PyTensor*>(self)->value.~Tensor();
  PyTypeObject* const its_type = Py_TYPE(self);
  reinterpret_cast<void (*)(void*)>(PyType_GetSlot(its_type, Py_tp_free))(self);
  Py_DECREF(its_type);  // each instance of a heap type owns a reference to it
}

PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) {
  PyErr_SetString(PyExc_TypeError, "make tensors with torch.tensor(...)");
  return nullptr;
}

PyObject* tolist(PyObject* self, PyObject*) {
  return guarded([&] { return nested_from_tensor(unwrap(self)).release(); });
}

PyObject* item(PyObject* self, PyObject*) {
  return guarded([&] { return PyFloat_FromDouble(unwrap(self).item()); });
}

PyObject* to_float(PyObject* self) { return item(self, nullptr); }

PyObject* repr(PyObject* self) {
  return guarded([&] {
    const PyRef list = nested_from_tensor(unwrap(self));
    return PyUnicode_FromFormat("tensor(%R, dtype=%s)", list.get(), c10::name(unwrap(self).scalar_type()));
  });
}

PyObject* shape(PyObject* self, void*) {
  return guarded([&] { return tuple_from_sizes(unwrap(self).sizes()).release(); });
}

PyObject* dtype(PyObject* self, void*) {
  return PyUnicode_InternFromString(c10::name(unwrap(self).scalar_type()));
}

// Pickled as the call that makes it again; the shape too, for tensors without elements.
PyObject* reduce(PyObject* self, PyObject*) {
  return guarded([&] {
    const PyRef module = own(PyImport_ImportModule("torch._C"));
    const PyRef make = own(PyObject_GetAttrString(module.get(), "tensor"));
    const PyRef list = nested_from_tensor(unwrap(self));
    const PyRef sizes = tuple_from_sizes(unwrap(self).sizes());
    return Py_BuildValue("O(OO)", make.get(), list.get(), sizes.get());
  });
}

// A Tensor as it is, a number as a 0-d Tensor.
at::Tensor operand(PyObject* object) {
  if (PyObject_TypeCheck(object, type)) return unwrap(object);
  const double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred()) throw PythonError();
  return at::Tensor::scalar(value);
}

using Binary = at::Tensor (*)(const at::Tensor&, const at::Tensor&);

template <Binary op>
PyObject* infix(PyObject* left, PyObject* right) {
  for (PyObject* side : {left, right})
    if (!PyObject_TypeCheck(side, type) && !PyNumber_Check(side)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] { return wrap(op(operand(left), operand(right))); });
}

PyMethodDef methods[] = {
    {"tolist", tolist, METH_NOARGS, "the values as nested lists"},
    {"item", item, METH_NOARGS, "the only value as a float"},
    {"numpy", tensor_to_numpy, METH_NOARGS, "an ndarray on the same memory"},
    {"__reduce__", reduce, METH_NOARGS, nullptr}};

PyGetSetDef properties[] = {{"shape", shape, nullptr, "the size of each dimension", nullptr},
                            {"dtype", dtype, nullptr, "always torch.float64 here", nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

// The methods written here, then the generated ones with their end mark.
PyMethodDef* all_methods() {
  constexpr std::size_t own = sizeof methods / sizeof *methods;
  std::size_t generated = 1;  // the end mark
  while (op_methods[generated - 1].ml_name) ++generated;
  auto* table = new PyMethodDef[own + generated];  // the type keeps it to the end
  for (std::size_t i = 0; i < own + generated; ++i) table[i] = i < own ? methods[i] : op_methods[i - own];
  return table;
}

template <class Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

PyTypeObject* tensor_type() { return type; }

bool add_tensor_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_new, slot(refuse_new)},
                         {Py_tp_dealloc, slot(dealloc)},
                         {Py_tp_repr, slot(repr)},
                         {Py_tp_methods, all_methods()},
                         {Py_tp_getset, properties},
                         {Py_nb_add, slot(infix<at::add>)},
                         {Py_nb_multiply, slot(infix<at::mul>)},
                         {Py_nb_matrix_multiply, slot(infix<at::matmul>)},
                         {Py_nb_float, slot(to_float)},
                         {Py_bf_getbuffer, slot(tensor_get_buffer)},
                         {Py_bf_releasebuffer, slot(tensor_release_buffer)},
                         {0, nullptr}};
  PyType_Spec spec{"torch.Tensor", sizeof(PyTensor), 0, Py_TPFLAGS_DEFAULT, slots};
  type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type && PyModule_AddType(module, type) == 0;
}

PyObject* wrap(at::Tensor value) {
  using Alloc = PyObject* (*)(PyTypeObject*, Py_ssize_t);
  PyRef self = own(reinterpret_cast<Alloc>(PyType_GetSlot(type, Py_tp_alloc))(type, 0));
  new (&reinterpret_cast<PyTensor*>(self.get())->value) at::Tensor(std::move(value));
  return self.release();
}

PyObject* wrap(bool value) { return PyBool_FromLong(value); }

const at::Tensor& unwrap(PyObject* tensor) { return reinterpret_cast<PyTensor*>(tensor)->value; }

}  // namespace torch
