"""mats: capability discovery as search over a registry of models, agents, tools and skills."""

__version__ = "1.0.0"
