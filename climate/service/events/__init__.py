"""Events: claims, dispatch and the steps of due events."""
