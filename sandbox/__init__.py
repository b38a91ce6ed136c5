"""What runs inside the sandbox image? Standard library only; see README.md beside this file."""
