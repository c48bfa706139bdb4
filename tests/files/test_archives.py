"""Archives of arrays."""

from matrix_files import npy, npz, traced


def test_a_directory_that_lies_takes_no_memory(tmp_path, monkeypatch):
    """The directory of an archive and the header of its array agree on 3.2 GB; 8 bytes are there."""
    monkeypatch.setattr("symrelu.files.checks.available_memory", lambda: None)
    header = npy("(100000000, 4)")
    content = bytearray(npz(a=header + bytes(8)))
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = (len(header) + 32 * 10**8).to_bytes(4, "little")
    path = tmp_path / "lie.npz"
    path.write_bytes(content)
    error, peak = traced(path)
    error.match(r"lie.npz is not a readable npz file .*an array ends after 8 of 3200000000 bytes")
    assert peak < 12 * 2**20
