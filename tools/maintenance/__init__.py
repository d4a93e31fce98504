"""Scripts for moving on: to another machine, another TVM, another accelerator."""
