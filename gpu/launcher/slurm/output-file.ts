import { open } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import type { LogPiece } from '../launcher.ts'

const pieceBytes = 64 << 10
/** Milliseconds between two looks at a file. Shared file systems announce no changes of other machines. */
const lookMs = 200

/**
 * Follows a file that another machine appends to, from this byte on. Ends after the last byte once `isOver` says that nobody
 * writes it any more; also if there never was such a file.
 */
export async function* followFile(
  path: string,
  from: number,
  isOver: () => boolean,
  signal: AbortSignal,
): AsyncIterable<LogPiece> {
  let at = from
  while (!signal.aborted) {
    // Asked before the file is read: what is written later belongs to a later look.
    const last = isOver()
    const file = await open(path).catch(() => undefined)
    try {
      for (let more = file !== undefined; more && !signal.aborted; ) {
        const bytes = new Uint8Array(pieceBytes)
        const { bytesRead } = await file!.read(bytes, 0, pieceBytes, at)
        more = bytesRead > 0
        if (more) yield { at, bytes: bytes.subarray(0, bytesRead) }
        at += bytesRead
      }
    } finally {
      await file?.close()
    }
    if (last) return
    await pause(lookMs, undefined, { signal, ref: false }).catch(() => {})
  }
}
