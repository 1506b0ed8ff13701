"""The file that spark-submit runs: `spark-submit --py-files hudi-jobs.zip main.py --request JSON`.

`--request-file PATH_OR_URI` is the alternative. Prints progress lines (`HUDI_PROGRESS {…}`) and one result line
(`HUDI_RESULT {…}`). Exit codes: 0 done, 1 failed, 2 bad input, 3 another process holds the instant (safe to retry).

Over Spark Connect there is no spark-submit: `SPARK_REMOTE=sc://host:15002 python main.py --py-files hudi-jobs.zip
--request JSON` runs the driver here and gives the zip to the server's executors.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

EXIT_BAD_INPUT = 2


def main() -> int:
    """Runs the job from the zip. Reports in the job's own form if the driver lacks the zip or a wheel."""
    arguments = sys.argv[1:]
    try:
        if len(arguments) > 1 and arguments[0] == "--py-files" and "SPARK_REMOTE" in os.environ:
            if code := open_remote_session(os.environ["SPARK_REMOTE"], arguments[1]):
                return code
            del arguments[:2]
        from hudi_spark.job import main as run
    except ModuleNotFoundError as error:
        remedy = "give the job zip by --py-files, and install pyarrow, numpy and fsspec where the driver runs"
        body = {"message": f"the driver has no Python module {error.name}", "path": None, "remedy": remedy}
        print("HUDI_RESULT", json.dumps({"version": 1, "error": {"type": "ConfigError", **body}}, sort_keys=True))
        return EXIT_BAD_INPUT
    return run(arguments)


def open_remote_session(url: str, zip_file: str) -> int:
    """Opens the session that the job then finds. Returns 0, or the exit code of the error that it reported."""
    sys.path.insert(0, zip_file)
    from hudi_core.errors import HudiError
    from hudi_core.request.results import Result, result_line
    from hudi_spark.session import open_session

    try:
        open_session(url, Path(zip_file), conf={}, app_name="hudi")
        return 0
    except HudiError as error:
        result = Result.of_error(error)
    except Exception as error:  # noqa: BLE001 (PySpark does not catch gRPC's own errors)
        result = Result.broken(type(error).__name__, str(error), 1)
    print("HUDI_RESULT", json.dumps(result_line(result), sort_keys=True))
    return result.exit_code


if __name__ == "__main__":
    # Databricks runs this file in its own process and may treat any SystemExit as a failure.
    if exit_code := main():
        sys.exit(exit_code)
