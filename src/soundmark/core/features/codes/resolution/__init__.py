"""Operations for receivers. Resolution itself is in `soundmark.core.hot`."""
