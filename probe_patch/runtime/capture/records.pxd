cimport cython
from probe_patch.runtime.capture.contents cimport Contents
from probe_patch.runtime.capture.forms cimport Look, TensorList, TensorRecord, TensorTexts, tensor_record, tensor_records
from probe_patch.runtime.capture.forwards cimport Call
from probe_patch.runtime.json_text cimport JsonStyle
from probe_patch.runtime.capture.scalars cimport scalar_record
from probe_patch.runtime.stats.plain cimport is_plain, plain_values
from probe_patch.runtime.stats.states cimport state_of
cdef dict _SINGLE_KEYWORDS
cdef dict _shared(dict records)
cdef class Recorder:
    cdef Contents _contents
    cdef object _problems, _slices, _files
    cdef bint _takes_whole
    cdef long _parts
    cdef public list looks
    cdef dict _known_looks, _file_of
    cdef public long tensors
    cdef public tuple further_slices
    cdef public dict known
    cpdef launch(self)
    cpdef object arguments(self, Call call, tuple values)
    cpdef dict keywords(self, Call call, object values)
    cpdef object output(self, Call call, object value)
    cpdef object arrived(self, Call call, long number, object gradient)
    cpdef object passed_on(self, Call call, long number, object gradient)
    cpdef TensorRecord again(self, object record)
    @cython.locals(place=long)
    cdef TensorRecord _again(self, TensorRecord record)
    cpdef object parameter_gradient(self, str entry, str parameter, object gradient)
    cpdef dict parameters(self, Call call, object module)
    cpdef TensorTexts read(self, JsonStyle style)
    cdef str _place(self, str entry, str path)
    @cython.locals(first=long, made=long, records=list, tensor=TensorRecord)
    cdef object _listed(self, tuple values)
    cdef object _guarded(self, object value, object keyword, str place)
    cdef object _record(self, object value, object keyword, list around, str place)
    @cython.locals(record=TensorRecord, known=dict)
    cdef TensorRecord _tensor(self, object tensor, str place)
    @cython.locals(look=Look, whole=Look, record=TensorRecord)
    cdef TensorRecord _looked_at(self, object tensor, str place)
    @cython.locals(record=TensorRecord)
    cdef TensorRecord _add(self, Look look)
    @cython.locals(look=Look)
    cdef Look _look(self, object tensor, object values)
    cdef object _part_of(self, object tensor, object values)
    cdef object _saved(self, object values, str place)
