"""Every operation in plain torch: short, slow, and what the fast ones are tested against."""
