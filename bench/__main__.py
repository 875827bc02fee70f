"""`python -m penstock.bench` is `penstock bench`."""

from .command import bench

if __name__ == "__main__":
    bench(prog_name="penstock bench")
