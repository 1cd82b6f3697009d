"""What several tests share: points, programs and their records, identities, claims."""
