import type { Terminal } from '../terminal.ts'

/**
 * The whole screen of a terminal, as `top` takes it: what stood there before is there again afterwards. Frames are
 * written over each other in one piece, so that nothing flickers. Restores the terminal however the program ends.
 */
export function openScreen({ stdin, stdout }: Terminal, onKey: (key: string) => void) {
  const raw = stdin.isTTY
  let shown = ''
  let open = true

  const read = (bytes: Buffer) => {
    for (const key of bytes.toString('utf8')) onKey(key)
  }
  if (raw) {
    stdin.setRawMode(true)
    stdin.on('data', read)
    stdin.resume()
  }
  stdout.write('\u001b[?1049h\u001b[?25l\u001b[2J')
  process.once('exit', close)

  function close(): void {
    if (!open) return
    open = false
    process.off('exit', close)
    stdout.write('\u001b[?25h\u001b[?1049l')
    if (!raw) return
    stdin.off('data', read)
    stdin.setRawMode(false)
    stdin.pause()
  }

  return {
    /** The last column stays free: erasing behind a sign that stands there takes it away. */
    room: () => ({ width: Math.max(20, (stdout.columns || 80) - 1), height: Math.max(5, stdout.rows || 24) }),
    /** Shows these lines and nothing else. A frame that is the one before is not written again. */
    show(lines: readonly string[]): void {
      const frame = lines.join('\u001b[K\r\n')
      if (!open || frame === shown) return
      shown = frame
      // Between the two marks a terminal that knows them draws nothing.
      stdout.write(`\u001b[?2026h\u001b[H${frame}\u001b[K\u001b[J\u001b[?2026l`)
    },
    /** The next frame is written in full: the terminal has another size. */
    forget(): void {
      shown = ''
    },
    close,
  }
}
