"""Members: the people of a tenant, their roles and their invitations."""
