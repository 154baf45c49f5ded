"""What customers can buy."""
