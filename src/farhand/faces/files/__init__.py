"""What is too big for a result: uploaded once, referred to by its ref."""
