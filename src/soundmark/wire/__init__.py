"""The published closed shapes, as Core answers them and as their JSON Schemas state them."""
