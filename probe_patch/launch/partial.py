"""Whether a setting of a running server makes its dump partial: one question each, put to its ``server_args``."""

from probe_patch.launch.server import ABSENT, Server

# More tokens than any prompt has: a chunk of that size never cuts one.
WHOLE_PROMPT_TOKENS = 131072


def decode_graphs(server: Server) -> bool:
    if server.read("disable_cuda_graph") or _on_cpu(server):
        return False
    return _replays_counted_forwards(server)


def decode_graph_backend(server: Server) -> bool:
    return _decode_backend(server) and not _config_wins(server, "decode")


def _replays_counted_forwards(server: Server) -> bool:
    """Decode graphs also serve the extend forwards of diffusion language models."""
    return server.wants("decode") or bool(server.read("dllm_algorithm"))


def prefill_graph_backend(server: Server) -> bool:
    return _prefill_backend(server) and not _config_wins(server, "prefill")


def graphs_of_the_config(server: Server) -> bool:
    """Whether ``--cuda-graph-config`` brings graphs that the flag of their phase cannot turn off."""
    decode = _decode_backend(server) and _config_wins(server, "decode")
    return decode or (server.wants("extend") and _prefill_backend(server) and _config_wins(server, "prefill"))


def _decode_backend(server: Server) -> bool:
    return not _on_cpu(server) and _graph_backend(server, "decode") and _replays_counted_forwards(server)


def _prefill_backend(server: Server) -> bool:
    return not _on_cpu(server) and _graph_backend(server, "prefill")


def _config_wins(server: Server, phase: str) -> bool:
    """Whether a backend other than "disabled" comes from ``--cuda-graph-config``.

    It does where the flag of the phase says "disabled", or says nothing while something that the user gave decided:
    SGLang remembers pairs of a phase and a key that were given.
    """
    flag = server.read(f"cuda_graph_backend_{phase}")
    if isinstance(flag, str):
        return flag == "disabled"
    given = server.read("_cuda_graph_config_locked")
    return isinstance(given, set | frozenset) and (phase, "backend") in given


def _graph_backend(server: Server, phase: str) -> bool:
    """Whether a phase has graphs: what the settled configuration says, or the flags while there is none."""
    backend = server.read("cuda_graph_config", phase, "backend")
    if backend is ABSENT:
        backend = server.read(f"cuda_graph_backend_{phase}")
    if isinstance(backend, str):
        return backend != "disabled"
    return not (server.read("disable_cuda_graph") or server.read(f"disable_{phase}_cuda_graph"))


def piecewise_graphs_asked_for(server: Server) -> bool:
    return bool(server.read("enable_piecewise_cuda_graph")) and not _on_cpu(server)


def piecewise_graphs_not_off(server: Server) -> bool:
    off = server.read("disable_piecewise_cuda_graph") or server.read("enforce_piecewise_cuda_graph")
    return not off and not _on_cpu(server)


def piecewise_graphs_enforced(server: Server) -> bool:
    return bool(server.read("enforce_piecewise_cuda_graph")) and not _on_cpu(server)


def compiled(server: Server) -> bool:
    """A CPU compiles whatever the graphs; a GPU compiles what it captures."""
    if not server.read("enable_torch_compile"):
        return False
    if _on_cpu(server):
        return True
    return _graph_backend(server, "decode") if server.has("cuda_graph_config") else decode_graphs(server)


def warm_up(server: Server) -> bool:
    return not server.read("skip_server_warmup")


def radix_cache(server: Server) -> bool:
    return not server.read("disable_radix_cache")


def chunks(server: Server) -> bool:
    size = server.read("chunked_prefill_size")
    return isinstance(size, int) and 0 < size < WHOLE_PROMPT_TOKENS


def profiling_forwards(server: Server) -> bool:
    stages = server.read("pp_size")
    return bool(server.read("enable_dynamic_chunking")) and isinstance(stages, int) and stages > 1


def speculation(server: Server) -> bool:
    return bool(server.read("speculative_algorithm"))


def other_mode_of_pd(server: Server) -> bool:
    """Whether a prefill or decode server never runs what is to be dumped."""
    role = server.read("disaggregation_mode")
    return (role == "decode" and not server.wants("decode")) or (role == "prefill" and not server.wants("extend"))


def dynamo(server: Server) -> bool:
    return server.environ.get("TORCHDYNAMO_DISABLE") != "1"


def is_set(field: str, server: Server) -> bool:
    return bool(server.read(field))


def _on_cpu(server: Server) -> bool:
    """On CPU there are no graphs."""
    return server.read("device") == "cpu"
