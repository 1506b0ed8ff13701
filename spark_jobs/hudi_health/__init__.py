"""What examines a table and writes nothing to it: neither Spark nor Airflow."""
