"""Beam pipelines on Apache Flink.

| module | what it does |
|---|---|
| `checks` | the settings, before anything starts |
| `runner` | submit a pipeline, wait for it, cancel it |
| `job_server` | start and stop Beam's job server, a Java process |
| `guard` | end the job server, and cancel its jobs, after the death of their parent |
| `rest` | call Flink's REST API: progress, the time without progress, the end of jobs |
| `failures` | the cause of a failed job in one line |
| `worker_pool` | Python workers: processes of a pool, or threads of this process |
"""
