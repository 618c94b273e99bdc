"""Convert files that no run reads into files of lines in UTF-8."""
