"""``python -m probe_patch``."""

from probe_patch.entry import main

if __name__ == "__main__":
    main()
