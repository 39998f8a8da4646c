"""Every private name of Gymnasium, Stable-Baselines3 and CPython that we rely on."""
