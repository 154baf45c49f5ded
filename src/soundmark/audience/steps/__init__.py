"""Steps of transactions that several commands share."""
