"""Plans that the operator gives to organisations."""
