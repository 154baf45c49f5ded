"""Operations for whoever runs the platform."""
