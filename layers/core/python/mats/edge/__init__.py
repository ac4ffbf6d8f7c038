"""What the handlers share: typed reading of events, one answer shape, one problem shape, one wide log line."""
