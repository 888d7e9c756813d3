"""CRC-32 and exclusive or of the raw bytes of one tensor, in row-major order, as msProbe's dumps have them (26.2.0)."""
