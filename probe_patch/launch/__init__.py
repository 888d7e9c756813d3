"""What an SGLang of any version must be started with so that a dump is complete; it is read, never imported."""
