"""Rate limits, in one process or shared by several."""
