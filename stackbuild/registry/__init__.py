"""Image registries: references, mirrors, and a client that reads manifests and blobs."""
