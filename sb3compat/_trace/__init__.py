"""What each API sees around the ends of episodes; `trace` is the public function."""
