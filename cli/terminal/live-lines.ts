import type { WriteStream } from 'node:tty'

/** Minimum and maximum time between two drawings; the maximum keeps elapsed times current. Milliseconds. */
const drawEveryMs = 100
const tickMs = 1_000

/** Redraws lines of a terminal in place until `close`, below earlier output. */
export function openLiveLines(stderr: Pick<WriteStream, 'write'>, frame: () => readonly string[], now: () => number) {
  let drawnLines = 0
  let drawnAt = Number.NEGATIVE_INFINITY
  let pendingDraw: NodeJS.Timeout | undefined

  /** Escape sequence that erases the lines and moves the cursor to their beginning. */
  const erased = () => (drawnLines === 0 ? '' : `\r${drawnLines > 1 ? `\u001b[${drawnLines - 1}A` : ''}\u001b[J`)
  function erase(): void {
    if (drawnLines > 0) stderr.write(erased())
    drawnLines = 0
  }
  function draw(): void {
    const lines = frame()
    const text = erased() + lines.join('\n')
    drawnLines = lines.length
    drawnAt = now()
    if (text !== '') stderr.write(text)
  }
  const timer = setInterval(draw, tickMs)

  return {
    draw,
    /** Draws now, or when the minimum time since the last drawing has passed. */
    scheduleDraw(): void {
      const restMs = drawEveryMs - (now() - drawnAt)
      if (restMs <= 0) return draw()
      pendingDraw ??= setTimeout(() => {
        pendingDraw = undefined
        draw()
      }, restMs)
    },
    /** Writes other output, to either stream, above the lines. */
    aside(write: () => void): void {
      erase()
      write()
      draw()
    },
    /** Stops drawing. Erases the lines unless `keep` is set. */
    close({ keep = false } = {}): void {
      clearInterval(timer)
      clearTimeout(pendingDraw)
      if (!keep) return erase()
      draw()
      if (drawnLines > 0) stderr.write('\n')
      drawnLines = 0
    },
  }
}
