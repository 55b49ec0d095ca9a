"""The doctor: what the surroundings of a build are held against, beside what every plan is."""
