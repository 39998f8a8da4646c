"""The kit, run on popular libraries; not packaged."""
