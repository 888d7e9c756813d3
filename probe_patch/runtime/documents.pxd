cimport cython
from probe_patch.runtime.ascii_text cimport AsciiText
from probe_patch.runtime.call_names cimport add_forward
from probe_patch.runtime.enclosures cimport ConstructText
@cython.locals(before=str, written=str)
cdef _add_group(AsciiText text, long number, list calls, tuple frames, dict known)
