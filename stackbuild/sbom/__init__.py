"""Software bills of materials: from spec and lock to CycloneDX. Knows no Docker."""
