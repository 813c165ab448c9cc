//! What the commands beside `run` do.
