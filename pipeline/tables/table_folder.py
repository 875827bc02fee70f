"""The folder of a Parquet table, through Hadoop's FileSystem API: a local disk, HDFS, an object store. A shell.

What the rules rest on: a file is created with its whole content or not at all, and never over another; a rename of
one file is atomic, and may be asked for again. Local disks and HDFS keep both. Object stores of `s3a:` copy in place
of a rename and check before they create: there a table needs one writer at a time, and nothing else enforces it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from .manifest import DataFile

DATA_SUFFIX: Final = ".parquet"
# Files that readers of Parquet leave out.
HIDDEN: Final = ("_", ".")


class TableFolder:
    """Paths are relative to the table's folder and have slashes."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        # Spark's Python API has no files; this is the way of its own modules to Hadoop's.
        context: Any = spark.sparkContext
        self._gateway = context._gateway
        self._jvm = self._gateway.jvm
        self._configuration = configuration = context._jsc.hadoopConfiguration()
        path = self._jvm.org.apache.hadoop.fs.Path(location)
        self._file_system = path.getFileSystem(configuration)
        self._root = self._file_system.makeQualified(path)
        self._context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(self._root.toUri(), configuration)
        self._is_local = self._root.toUri().getScheme() == "file"

    @property
    def uri(self) -> str:
        return str(self._root.toString())

    def uri_of(self, path: str) -> str:
        return str(self._path(path).toString())

    def exists(self, path: str) -> bool:
        return bool(self._file_system.exists(self._path(path)))

    def names(self, folder: str) -> tuple[str, ...]:
        """Of what lies in a folder; empty when it is not there."""
        path = self._path(folder)
        if not self._file_system.exists(path):
            return ()
        return tuple(sorted(status.getPath().getName() for status in self._file_system.listStatus(path)))

    def data_files(self, folder: str) -> tuple[DataFile, ...]:
        """Parquet files below a folder, by their paths in it, with what their footers say; hidden ones left out."""
        return tuple(sorted(self._data_files(folder), key=lambda one: one.path))

    def _data_files(self, folder: str) -> Iterator[DataFile]:
        root = self._path(folder)
        if not self._file_system.exists(root):
            return
        base = root.toUri().getPath()
        found = self._file_system.listFiles(root, True)
        while found.hasNext():
            status = found.next()
            path = status.getPath().toUri().getPath()[len(base) :].lstrip("/")
            if path.endswith(DATA_SUFFIX) and not any(part.startswith(HIDDEN) for part in path.split("/")):
                yield DataFile(path=path, size_bytes=status.getLen(), row_count=self._row_count(status))

    def _row_count(self, status: Any) -> int:
        parquet = self._jvm.org.apache.parquet.hadoop
        file = parquet.util.HadoopInputFile.fromStatus(status, self._configuration)
        reader = parquet.ParquetFileReader.open(file)
        try:
            return int(reader.getRecordCount())
        finally:
            reader.close()

    def read(self, path: str) -> bytes:
        stream = self._file_system.open(self._path(path))
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))
        finally:
            stream.close()

    def create(self, path: str, content: bytes, *, token: str) -> bool:
        """Creates a file with all of its content, and says whether it was not there; `token` tells writers apart."""
        target = self._path(path)
        parent = target.getParent()
        self._file_system.mkdirs(parent)
        draft = self._jvm.org.apache.hadoop.fs.Path(parent, f".{target.getName()}.{token}")
        stream = self._file_system.create(draft, True)
        try:
            stream.write(content)
            stream.hsync()
        finally:
            stream.close()
        try:
            return self._publish(draft, target)
        finally:
            self._file_system.delete(draft, False)

    def _publish(self, draft: Any, target: Any) -> bool:
        """Hadoop's rename on a local disk looks first and renames then; a hard link looks and makes as one."""
        try:
            if self._is_local:
                self._jvm.java.nio.file.Files.createLink(self._local_path(target), self._local_path(draft))
            else:
                rename = self._jvm.org.apache.hadoop.fs.Options.Rename
                self._context.rename(draft, target, self._gateway.new_array(rename, 0))
        except Py4JJavaError as error:
            # java.nio.file has one of this name, Hadoop another.
            if error.java_exception.getClass().getSimpleName() == "FileAlreadyExistsException":
                return False
            raise
        return True

    def rename(self, old: str, new: str) -> None:
        """Moves one file. Done before, by this program or another that does the same, it is no error.

        Raises FileNotFoundError when neither is there.
        """
        source, target = self._path(old), self._path(new)
        if self._file_system.exists(source):
            self._file_system.mkdirs(target.getParent())
            # False for a file that went meanwhile: the question below answers.
            self._file_system.rename(source, target)
        if not self._file_system.exists(target):
            raise FileNotFoundError(f"neither {old} nor {new} is in the table {self.uri}")

    def delete(self, path: str) -> None:
        """A file, or a folder with all in it; one that is not there is no error."""
        self._file_system.delete(self._path(path), True)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, path) if path else self._root

    def _local_path(self, path: Any) -> Any:
        return self._jvm.java.io.File(path.toUri().getPath()).toPath()
