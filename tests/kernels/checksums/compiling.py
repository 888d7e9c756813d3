"""Compiles a checksum kernel for each of NVIDIA's architectures given, without a GPU, and prints what came of it."""

import json
import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tests.kernels.checksums.signatures import BLOCKS, kernel, signature

found = {}
for architecture in map(int, sys.argv[1:]):
    for name, block in BLOCKS.items():
        for whole in ("i32", "i64"):
            types = signature(name, whole)
            source = ASTSource(
                fn=kernel(name),
                signature=types,
                constexprs={"BLOCK": block},
                attrs={(place,): [["tt.divisibility", 16]] for place, of in enumerate(types.values()) if "*" in of},
            )
            compiled = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options={"num_warps": 4})
            found[f"{name} {architecture} {whole}"] = compiled.asm["ptx"]
json.dump(found, sys.stdout)
