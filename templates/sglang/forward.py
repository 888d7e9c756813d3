#: The decorator nearest to ModelRunner's forward: it starts before the forward pass, and stops and steps however that ends.
@_probe_patch_forward
