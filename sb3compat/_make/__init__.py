"""The function `make_vec_env`, with the native and monitored environments that it makes."""
