"""The file that spark-submit runs: `spark-submit --py-files hudi-jobs.zip main.py --request JSON`.

`--request-file PATH_OR_URI` is the alternative. Prints progress lines (`HUDI_PROGRESS {…}`) and one result line
(`HUDI_RESULT {…}`). Exit codes: 0 done, 1 failed, 2 bad input, 3 another process holds the instant (safe to retry).
"""

from __future__ import annotations

import json
import sys

EXIT_BAD_INPUT = 2


def main() -> int:
    """Calls the job zip; reports in the job's own form when the driver lacks the zip or a wheel."""
    try:
        from hudi_spark.job import main as run
    except ModuleNotFoundError as error:
        remedy = (
            "give the job zip to spark-submit with --py-files, and install pyarrow, numpy and fsspec where the "
            "driver runs"
        )
        body = {
            "type": "ConfigError",
            "message": f"the driver has no Python module {error.name}",
            "path": None,
            "remedy": remedy,
        }
        print("HUDI_RESULT", json.dumps({"version": 1, "error": body}, sort_keys=True))
        return EXIT_BAD_INPUT
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
