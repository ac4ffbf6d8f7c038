"""The paper's baselines: what agents do today instead of searching a registry in two stages."""
