"""Opens the storage of a table, and says what each storage promises.

- ``base``: what every storage promises: exclusive creates, conditional writes, consistent listings; for how long a
  request may be tried again, and so arrive late.
- ``registry``: which storage serves an address, and its options; the full address of a file, as plans have it.
- ``local``: tables on a disk: links, pipes and second names of a file are refused; names that are no UTF-8; how one of
  several creates wins; `.crc` files.
- ``fsspec_store``: tables on other storages: which of them have folders, and how a folder is deleted.
- ``s3_conditional``: when a create or a replace on S3 is exclusive, what a lost answer means, when a write is repeated.
- ``arrow_store``: which storage reads and writes data files, which one deletes them; a missing bucket.
- ``failures``: which failure means "absent", and which access denied, no credentials, overload or a full disk; a file
  whose writing failed is not published.
- ``one_look``: what a step of a run requests only once, when it looks again, which folders it always looks up.
- ``overlapped``: which requests of a run are made at the same time, and on which storages.
- ``recorded_changes``: whether a command has written anything: if so, it does not end with the exit code of bad input.

Elsewhere: the test of a storage's exclusive creates is in ``hudi_health/probe``; how large a file may be in
``model/size_limits``; which paths are safe in ``model/partition``; a timeline file that is half-written in
``timeline/actions/content``.
"""
