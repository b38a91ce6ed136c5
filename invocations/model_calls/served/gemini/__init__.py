"""Google's generateContent, served."""
