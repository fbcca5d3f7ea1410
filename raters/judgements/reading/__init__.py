"""From files and the exports of tools to tables, and from the columns of a table to codes and
names."""
