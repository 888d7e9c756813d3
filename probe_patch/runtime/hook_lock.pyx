"""The lock of one dump: whoever records holds it, and takes and gives it back thousands of times in a step.

Python's own takes several times as long to read the arguments of ``acquire`` as to take the lock.
"""

from time import monotonic

cdef extern from "pythread.h":
    ctypedef void* PyThread_type_lock
    unsigned long PyThread_get_thread_ident() nogil
    PyThread_type_lock PyThread_allocate_lock()
    void PyThread_free_lock(PyThread_type_lock)
    void PyThread_release_lock(PyThread_type_lock) nogil
    int PyThread_acquire_lock(PyThread_type_lock, int) nogil
    # In microseconds; below 0, for as long as it takes. The last one tells to come back when a signal has come.
    int PyThread_acquire_lock_timed(PyThread_type_lock, long long, int) nogil
    enum: PY_LOCK_ACQUIRED, PY_LOCK_INTR

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1

cdef class HookLock:
    """A lock that its thread may take again, as ``threading.RLock``. ``with`` waits for as long as it takes.

    The methods that take it say whether it was taken.
    """

    def __cinit__(self):
        self._owner = self._depth = 0
        self._lock = PyThread_allocate_lock()
        if self._lock == NULL:
            raise MemoryError

    def __dealloc__(self):
        if self._lock != NULL:
            if self._depth:
                PyThread_release_lock(self._lock)
            PyThread_free_lock(self._lock)

    cpdef bint take(self) except -1:
        """Take it if that can be done at once."""
        cdef unsigned long thread = PyThread_get_thread_ident()
        if self._depth and self._owner == thread:
            self._depth += 1
            return True
        if not PyThread_acquire_lock(self._lock, 0):
            return False
        self._owner = thread
        self._depth = 1
        return True

    cpdef bint wait(self, double seconds) except -1:
        """Take it, and wait for no longer than this for another thread to give it back."""
        return self._wait(<long long> (seconds * 1e6))

    cpdef give_back(self):
        """The thread that has taken it is done."""
        if self._depth == 0 or self._owner != PyThread_get_thread_ident():
            raise RuntimeError("cannot release un-acquired lock")
        self._depth -= 1
        if self._depth == 0:
            PyThread_release_lock(self._lock)

    def __enter__(self):
        self._wait(-1)

    def __exit__(self, *raised):
        self.give_back()

    cdef bint _wait(self, long long microseconds) except -1:
        cdef int status
        if self.take():
            return True
        ends = None if microseconds < 0 else monotonic() + microseconds / 1e6
        while True:
            with nogil:
                status = PyThread_acquire_lock_timed(self._lock, microseconds, 1)
            if status == PY_LOCK_ACQUIRED:
                self._owner = PyThread_get_thread_ident()
                self._depth = 1
                return True
            if status != PY_LOCK_INTR:
                return False
            PyErr_CheckSignals()
            if ends is not None:
                microseconds = max(<long long> ((ends - monotonic()) * 1e6), 0)
