"""A recorder whose spans stay in memory, and a collector that takes them over the network."""
