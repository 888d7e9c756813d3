cimport cython

# As Python's own function of that name, for what has a dictionary: it is read where it lies.
cdef extern from "Python.h":
    dict PyObject_GenericGetDict(object, void*)

cdef inline dict vars(object value):
    return PyObject_GenericGetDict(value, NULL)

cdef tuple _ENTERED_IN
cdef class ForwardHooks:
    cdef object _number
    cdef list _handles
    cdef dict _as_torch
    @cython.locals(own=dict)
    cpdef before(self, object module, object hook)
    @cython.locals(own=dict)
    cpdef before_with_keywords(self, object module, object hook)
    @cython.locals(own=dict)
    cpdef after(self, object module, object hook)
    @cython.locals(own=dict)
    cpdef take_off(self, object module)
    cpdef remove_registered(self, object failed)
    cdef bint _are_entered(self, type kind) except -1
cdef bint _registers_as_torch(type kind) except -1
