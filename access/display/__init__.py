"""Display: the time zone and the form of numbers in which a person reads the console."""
