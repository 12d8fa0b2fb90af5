"""Schedule: jobs that fire while nobody is there."""
