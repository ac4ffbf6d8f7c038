"""Authorization by JSON Web Tokens. Needs PyJWT, which only the authorizer's Lambda layer carries."""
