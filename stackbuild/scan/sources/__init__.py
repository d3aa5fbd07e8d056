"""Where an image's layers are read from: an engine, an archive, an OCI layout, a folder, a registry."""
