"""What the settings, the checks and the runner share; this module imports nothing."""

LOCAL = "[local]"
"""The master that starts Flink inside the job server."""
RUNNER = "core.flink.runner.FlinkRunner"
"""The value of `--runner`; Beam imports a runner by its dotted name."""
ARTIFACT_PORT = 8098
"""The port at which a job server of Kubernetes accepts the files of a pipeline."""
JAVA = "java"
OPEN_PACKAGES = [
    f"--add-opens=java.base/{name}=ALL-UNNAMED"
    for name in ("java.lang", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch")
]
"""Options of Java for the packages that Flink accesses by reflection, which Java 17 forbids."""
EXIT_WITHOUT_MEMORY = "-XX:+ExitOnOutOfMemoryError"
"""Option of Java without which a process continues after the lack of memory has ended one of its
threads, such as the one that receives the output of a worker. The job would wait for it in vain."""
QUICK_START = ["-XX:TieredStopAtLevel=1"]
"""Options of Java for a process that no data passes through: no optimizing compiler. With it, half
of the CPU time of the JobManager and of the job server was compilation, in a run of the pipeline.
"""
