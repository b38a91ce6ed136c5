"""What runs inside the box, and how is the box made? See README.md here; ``sandbox.image`` is its recipe."""
