"""The processes of `soundmark up` and of `serve --workers`, started, watched and stopped."""
