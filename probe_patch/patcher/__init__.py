"""Rewrites slime's and SGLang's sources so that they dump, and back. Never imports torch, nor anything it patches.

``rewrite`` is the core, bytes to bytes; ``discovery`` finds files; ``transaction`` writes them, all or none;
``verbs`` puts the three together for the command line.
"""
