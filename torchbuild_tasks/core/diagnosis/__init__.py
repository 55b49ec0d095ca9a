"""Why a build failed: the first real error of a log, and what rows know about its cause."""
