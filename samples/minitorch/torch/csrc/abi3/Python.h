/* What minitorch uses of Python's C API, declared so that nothing else need be installed or read.

   On Debian and Ubuntu the interpreter comes without headers (python3-dev), and the sample is to
   build with python3 and a compiler alone. Every struct and function here belongs to the
   stable ABI of CPython 3.11 (docs.python.org/3/c-api/stable.html), so the layouts hold for
   each later version of the ordinary, not free-threaded, build. With USE_PYTHON_HEADERS, and for
   a free-threaded Python, the real Python.h is used, and this folder is not on the include path. */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef ptrdiff_t Py_ssize_t;
typedef struct PyTypeObject PyTypeObject;
typedef struct {
  Py_ssize_t ob_refcnt;
  PyTypeObject* ob_type;
} PyObject;
#define PyObject_HEAD PyObject ob_base;

typedef PyObject* (*PyCFunction)(PyObject*, PyObject*);
typedef PyObject* (*PyCFunctionWithKeywords)(PyObject*, PyObject*, PyObject*);
typedef struct {
  const char* ml_name;
  PyCFunction ml_meth;
  int ml_flags;
  const char* ml_doc;
} PyMethodDef;
#define METH_VARARGS 0x0001
#define METH_KEYWORDS 0x0002
#define METH_NOARGS 0x0004
#define METH_O 0x0008

typedef struct {
  const char* name;
  PyObject* (*get)(PyObject*, void*);
  int (*set)(PyObject*, PyObject*, void*);
  const char* doc;
  void* closure;
} PyGetSetDef;

typedef struct {
  PyObject ob_base;
  PyObject* (*m_init)(void);
  Py_ssize_t m_index;
  PyObject* m_copy;
} PyModuleDef_Base;
#define PyModuleDef_HEAD_INIT {{1, NULL}, NULL, 0, NULL}

typedef struct {
  PyModuleDef_Base m_base;
  const char* m_name;
  const char* m_doc;
  Py_ssize_t m_size;
  PyMethodDef* m_methods;
  void* m_slots;
  int (*m_traverse)(PyObject*, int (*)(PyObject*, void*), void*);
  int (*m_clear)(PyObject*);
  void (*m_free)(void*);
} PyModuleDef;
#define PYTHON_API_VERSION 1013

typedef struct {
  int slot;
  void* pfunc;
} PyType_Slot;
typedef struct {
  const char* name;
  int basicsize;
  int itemsize;
  unsigned int flags;
  PyType_Slot* slots;
} PyType_Spec;
#define Py_TPFLAGS_DEFAULT (1UL << 18)
#define Py_bf_getbuffer 1
#define Py_bf_releasebuffer 2
#define Py_nb_add 7
#define Py_nb_float 11
#define Py_nb_multiply 29
#define Py_tp_alloc 47
#define Py_tp_dealloc 52
#define Py_tp_methods 64
#define Py_tp_new 65
#define Py_tp_repr 66
#define Py_tp_getset 73
#define Py_tp_free 74
#define Py_nb_matrix_multiply 75

typedef struct {
  void* buf;
  PyObject* obj;
  Py_ssize_t len;
  Py_ssize_t itemsize;
  int readonly;
  int ndim;
  char* format;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  Py_ssize_t* suboffsets;
  void* internal;
} Py_buffer;
#define PyBUF_WRITABLE 0x0001
#define PyBUF_FORMAT 0x0004
#define PyBUF_C_CONTIGUOUS (0x0020 | 0x0010 | 0x0008)

typedef int PyGILState_STATE;

#ifdef _WIN32
#define PyAPI_DATA(type) extern __declspec(dllimport) type
#define TORCH_MODULE_EXPORT __declspec(dllexport)
#else
#define PyAPI_DATA(type) extern type
#define TORCH_MODULE_EXPORT __attribute__((visibility("default")))
#endif

PyAPI_DATA(PyTypeObject) PyTuple_Type;
PyAPI_DATA(PyObject *) PyExc_RuntimeError, *PyExc_SystemError, *PyExc_TypeError, *PyExc_ValueError;
PyAPI_DATA(PyObject) _Py_NoneStruct, _Py_TrueStruct, _Py_NotImplementedStruct;

void Py_IncRef(PyObject*);
void Py_DecRef(PyObject*);
int PyArg_ParseTuple(PyObject*, const char*, ...);
int PyArg_ParseTupleAndKeywords(PyObject*, PyObject*, const char*, char**, ...);
PyObject* Py_BuildValue(const char*, ...);
PyObject* PyBool_FromLong(long);
void PyBuffer_Release(Py_buffer*);
PyObject* PyErr_Format(PyObject*, const char*, ...);
PyObject* PyErr_NoMemory(void);
PyObject* PyErr_Occurred(void);
void PyErr_SetString(PyObject*, const char*);
double PyFloat_AsDouble(PyObject*);
PyObject* PyFloat_FromDouble(double);
PyGILState_STATE PyGILState_Ensure(void);
void PyGILState_Release(PyGILState_STATE);
PyObject* PyImport_ImportModule(const char*);
PyObject* PyList_GetItem(PyObject*, Py_ssize_t);
PyObject* PyList_New(Py_ssize_t);
int PyList_SetItem(PyObject*, Py_ssize_t, PyObject*);
long PyLong_AsLong(PyObject*);
long long PyLong_AsLongLong(PyObject*);
PyObject* PyLong_FromLong(long);
PyObject* PyLong_FromLongLong(long long);
int PyModule_AddFunctions(PyObject*, PyMethodDef*);
int PyModule_AddType(PyObject*, PyTypeObject*);
PyObject* PyModule_Create2(PyModuleDef*, int);
int PyNumber_Check(PyObject*);
PyObject* PyObject_CallMethod(PyObject*, const char*, const char*, ...);
PyObject* PyObject_GetAttrString(PyObject*, const char*);
int PyObject_GetBuffer(PyObject*, Py_buffer*, int);
PyObject* PySequence_Concat(PyObject*, PyObject*);
Py_ssize_t PySequence_Size(PyObject*);
PyObject* PyTuple_GetItem(PyObject*, Py_ssize_t);
PyObject* PyTuple_New(Py_ssize_t);
PyObject* PyTuple_Pack(Py_ssize_t, ...);
int PyTuple_SetItem(PyObject*, Py_ssize_t, PyObject*);
Py_ssize_t PyTuple_Size(PyObject*);
PyObject* PyType_FromSpec(PyType_Spec*);
unsigned long PyType_GetFlags(PyTypeObject*);
void* PyType_GetSlot(PyTypeObject*, int);
int PyType_IsSubtype(PyTypeObject*, PyTypeObject*);
PyObject* PyUnicode_FromFormat(const char*, ...);
PyObject* PyUnicode_FromString(const char*);
PyObject* PyUnicode_InternFromString(const char*);

#ifdef __cplusplus
}
#define PyMODINIT_FUNC extern "C" TORCH_MODULE_EXPORT PyObject*
#else
#define PyMODINIT_FUNC TORCH_MODULE_EXPORT PyObject*
#endif

static inline PyTypeObject* Py_TYPE(PyObject* object) { return object->ob_type; }
static inline int PyList_Check(PyObject* object) {
  return (PyType_GetFlags(Py_TYPE(object)) & (1UL << 25)) != 0;
}
static inline int PyTuple_Check(PyObject* object) {
  return (PyType_GetFlags(Py_TYPE(object)) & (1UL << 26)) != 0;
}
static inline PyObject* PySequence_Fast_GET_ITEM(PyObject* sequence, Py_ssize_t i) {
  return PyTuple_Check(sequence) ? PyTuple_GetItem(sequence, i) : PyList_GetItem(sequence, i);
}
static inline int PyObject_TypeCheck(PyObject* object, PyTypeObject* type) {
  return Py_TYPE(object) == type || PyType_IsSubtype(Py_TYPE(object), type);
}

#define Py_INCREF(object) Py_IncRef((PyObject*)(object))
#define Py_DECREF(object) Py_DecRef((PyObject*)(object))
#define PyModule_Create(definition) PyModule_Create2(definition, PYTHON_API_VERSION)
#define PySequence_Fast_GET_SIZE PySequence_Size
#define PyTuple_GET_SIZE PyTuple_Size
#define PyTuple_GET_ITEM PyTuple_GetItem
#define PyTuple_SET_ITEM PyTuple_SetItem
#define PyList_SET_ITEM PyList_SetItem
#define Py_RETURN_(object) return Py_IncRef(&object), &object
#define Py_RETURN_NONE Py_RETURN_(_Py_NoneStruct)
#define Py_RETURN_TRUE Py_RETURN_(_Py_TrueStruct)
#define Py_RETURN_NOTIMPLEMENTED Py_RETURN_(_Py_NotImplementedStruct)
