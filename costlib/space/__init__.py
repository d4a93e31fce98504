"""From a task to programs: sketches, decisions and every way to change a program."""
