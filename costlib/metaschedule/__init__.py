"""Drop-ins for people's own MetaSchedule scripts."""
