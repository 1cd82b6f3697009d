"""Tables of modules for `test_modules`: each file has CASES, from the text of a constructor to the text of its inputs."""
