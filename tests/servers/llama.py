"""llama.cpp's own server, as a process: `python -m tests.servers.llama MODEL PORT CONTEXT`. It ends with its input."""

import sys

import xllamacpp

if __name__ == "__main__":
    params = xllamacpp.CommonParams()
    params.model.path, params.port, params.n_ctx = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # several wait for each other, long under load
    server = xllamacpp.Server(params)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
