"""Pipes with deadlines, death watch and what is owed; exceptions across processes."""
