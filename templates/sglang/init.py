#: The decorator nearest to ModelRunner's __init__: the debugger is set up once the model is there.
@_probe_patch_init
