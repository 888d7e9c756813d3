# Declares nothing: dataclasses stay Python classes, but their methods are compiled.
