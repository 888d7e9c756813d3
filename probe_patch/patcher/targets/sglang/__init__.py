"""SGLang's ModelRunner, from 0.2.0 to 0.5.10.post1; later versions carry a hook of their own and need no patch.

One shape fits every version: a decorator on ``__init__`` and one on ``forward``; see ``anchors``.
"""
