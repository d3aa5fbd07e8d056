"""Making a lock: the base, debs and wheels of a spec, resolved to what is downloaded; and fetching what is locked."""
