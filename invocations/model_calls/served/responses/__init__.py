"""OpenAI's Responses, served."""
