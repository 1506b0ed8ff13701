"""Rewrites small or unordered file slices into new file groups.

- ``strategies``: which partitions and slices a plan takes, in which groups, and how many files a group becomes;
  which groups stay as they are, because an earlier clustering left them so.
- ``planner``: when a clustering is due; which groups a budget takes first; which clustering was the last one.
- ``job``: which plans only Hudi can run; whether the plan or the options decide sort columns, layout and file size;
  the check that no commit has changed the file groups of the plan since.
- ``units``: which groups one task sorts, and which go through an exchange; how slices are packed into tasks;
  which slices become one file without sort columns; the proof that each partition has as many rows as before.
- ``sorted_groups``: at which keys the files of a sorted group begin; how rows come to these files in order;
  how the files are compressed.

Elsewhere, in ``services/rewriting``: the order of rows is in ``sort_order``; when a new file is full in
``new_file_groups``; which pending writes keep a plan back in ``other_writers``; budgets of bytes in ``planning``.
"""
