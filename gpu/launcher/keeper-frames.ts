/** Bytes of a frame after its length, at most: a command with its environment, or a piece of output. */
const longestFrame = 16 << 20

const jsonKind = 0
const outputKind = 1

/** A message of the keeper or of a server as a frame: four bytes of length, one of kind, JSON. */
export function messageFrame(message: object): Buffer {
  const json = Buffer.from(JSON.stringify(message))
  return Buffer.concat([head(json.length, jsonKind), json])
}

/** What an engine has printed, as a frame: after the head one byte of length and the launch id, then the bytes. */
export function outputFrame(launchId: string, bytes: Uint8Array): Buffer {
  const id = Buffer.from(launchId)
  return Buffer.concat([head(1 + id.length + bytes.length, outputKind), Buffer.of(id.length), id, bytes])
}

function head(length: number, kind: number): Buffer {
  const bytes = Buffer.alloc(5)
  bytes.writeUInt32BE(length + 1)
  bytes[4] = kind
  return bytes
}

interface FrameListener {
  message(message: Record<string, unknown>): void
  output?(launchId: string, bytes: Buffer): void
}

/**
 * Returns a function that takes the pieces of a stream and calls the listener with each whole frame. It throws for what is
 * no frame, or is longer than `mostBytes()`.
 */
export function openFrameReader(listener: FrameListener, mostBytes: () => number = () => longestFrame) {
  let rest: Buffer = Buffer.alloc(0)

  function take(frame: Buffer): void {
    if (frame[0] === outputKind && listener.output) {
      const end = 2 + (frame[1] ?? 0)
      return listener.output(frame.toString('utf8', 2, end), frame.subarray(end))
    }
    const message: unknown = frame[0] === jsonKind ? JSON.parse(frame.toString('utf8', 1)) : undefined
    if (typeof message !== 'object' || message === null) throw new Error('It is no message.')
    listener.message(message as Record<string, unknown>)
  }

  return (piece: Buffer): void => {
    rest = rest.length === 0 ? piece : Buffer.concat([rest, piece])
    while (rest.length >= 4) {
      const length = rest.readUInt32BE()
      if (length === 0 || length > mostBytes()) throw new Error(`A frame of ${length} bytes is not accepted.`)
      if (rest.length < 4 + length) return
      const frame = rest.subarray(4, 4 + length)
      rest = rest.subarray(4 + length)
      take(frame)
    }
  }
}
