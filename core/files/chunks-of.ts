import type { FileHandle } from 'node:fs/promises'

/** Yields the bytes of the file from the beginning, in one buffer that every chunk reuses. */
export async function* chunksOf(file: FileHandle): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafe(1 << 20)
  for (let position = 0; ; ) {
    const { bytesRead } = await file.read({ buffer, position })
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}
