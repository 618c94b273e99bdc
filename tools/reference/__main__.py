"""Write the pages that have changed: `python -m tools.reference`."""

from __future__ import annotations

from tools.reference.pages import FOLDER, PAGES


def main() -> None:
    """Write every page that has changed."""
    for name, make in PAGES.items():
        file, text = FOLDER / name, make()
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"docs/reference/{name}")


if __name__ == "__main__":
    main()
