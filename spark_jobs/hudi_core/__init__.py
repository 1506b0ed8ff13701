"""The format engine: no Spark, no Airflow."""

VERSION = "0.1.0"
"""Written here, not looked up: the job zip carries no distribution metadata."""
