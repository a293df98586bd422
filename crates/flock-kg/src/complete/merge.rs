//! One list from the lists of several shards.
