"""Operations of the platform administrator."""
