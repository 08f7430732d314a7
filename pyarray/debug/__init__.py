"""Observers of launches: arguments on disk (`dump`), times (`trace`); and what the machine has."""
