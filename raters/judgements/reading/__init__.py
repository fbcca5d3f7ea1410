"""Reading the columns of a table into codes and names."""
