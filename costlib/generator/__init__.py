"""A tensor language model that writes programs (TLM, OSDI'24)."""
