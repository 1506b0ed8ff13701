"""Runs the units of a plan as tasks, and exchanges rows between tasks.

- ``protocol``: what every engine promises: one result per unit, in the order of units; a task's attempt; shared fields.
- ``serializer``: values as text: the types that have a form, and the refusal of a value of another form.
- ``local``: units in threads or processes of this machine: the attempts that are repeated, what the first failure
  stops, and a process that is killed.
- ``hidden_pandas``: which processes import no pandas.
- ``exchange``: the rows of an exchange: their form, when they go to temporary files, how many files merge at once.

Elsewhere: ``services/engine_choice`` chooses the engine that runs a plan, and says from how many bytes it uses
processes; ``hudi_spark/engine`` is Spark as an engine; ``hudi_spark/probe`` says whether executors have the modules
that they need; ``errors`` says which failures are transient.
"""
