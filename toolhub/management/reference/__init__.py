"""What do the generated pages of docs/reference say?"""
