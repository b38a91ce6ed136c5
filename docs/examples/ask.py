from typing import Any

from quotes import u

shown = u["finance"].render("gpt-4o")  # or claude-…, gemini-…, bedrock, langchain, mcp, xml


async def answer(response: Any) -> Any:
    """`response`: a provider's object, its JSON, its stream, or text. What goes back to the model, in the same dialect."""
    results = await u.dispatch(response, rendered=shown)
    return results.to_messages()
