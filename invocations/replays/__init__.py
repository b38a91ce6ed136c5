"""Can a call be gone through again, and is what comes of it what was recorded?"""
