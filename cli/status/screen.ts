import type { Terminal } from '../terminal/terminal.ts'

/**
 * Uses the terminal's alternate screen, as `top` does; the previous content reappears afterwards. Each frame is one
 * write over the previous one, so that nothing flickers. Restores the terminal however the program ends.
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
    /** The last column stays empty, because erasing the rest of a line would remove a character in it. */
    room: () => ({ width: Math.max(20, (stdout.columns || 80) - 1), height: Math.max(5, stdout.rows || 24) }),
    /** Shows only these lines. Does not write an unchanged frame again. */
    show(lines: readonly string[]): void {
      const frame = lines.join('\u001b[K\r\n')
      if (!open || frame === shown) return
      shown = frame
      // Synchronized output: a terminal that supports it draws nothing between the two sequences.
      stdout.write(`\u001b[?2026h\u001b[H${frame}\u001b[K\u001b[J\u001b[?2026l`)
    },
    /** Makes the next frame complete, after a change of the terminal's size. */
    forget(): void {
      shown = ''
    },
    close,
  }
}
