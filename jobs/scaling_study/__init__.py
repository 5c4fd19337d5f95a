"""The parts of jobs/scaling."""
