"""Software bills of materials: from a lock, or from what is in an image, to CycloneDX. Knows no Docker."""
