"""The functions of the Array API standard, one file per chapter."""
