"""The answer to a query: scored, ordered and explained candidates, and their trace."""
