"""What may be done with a plan of several calls? See ``plan`` for its form and ``driving`` for how it goes on."""
