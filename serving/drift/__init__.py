"""Whether a served model still fits new reviews: what its push keeps, and the comparison."""
