"""The TFX components that this project adds, one folder each: component.py and executor.py."""
