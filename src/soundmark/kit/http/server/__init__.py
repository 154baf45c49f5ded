"""One process that serves: uvicorn with our limits on connections."""
