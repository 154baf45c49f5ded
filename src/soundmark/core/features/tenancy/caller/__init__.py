"""Who a credential stands for."""
