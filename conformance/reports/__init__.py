"""Reports to other projects, a page for each, ready to be filed."""
