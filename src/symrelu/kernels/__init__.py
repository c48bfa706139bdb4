"""Plain functions on raw arrays: tiles of the gram matrix and the threads that share them."""
