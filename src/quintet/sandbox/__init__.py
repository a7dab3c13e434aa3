"""What a program can reach of the machine: a part of it to write, most of it to read, some of it not at all."""
