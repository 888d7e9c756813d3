"""config.json: reading, refusing, finding, starting."""
