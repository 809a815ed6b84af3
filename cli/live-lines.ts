import type { WriteStream } from 'node:tty'

/** How often a terminal is drawn at most, and how often at least: time goes on. Milliseconds. */
const drawEveryMs = 100
const tickMs = 1_000

/** Lines on a terminal that are drawn over and over in the same place, until `close`; below what was written before. */
export function openLiveLines(stderr: Pick<WriteStream, 'write'>, frame: () => readonly string[], now: () => number) {
  let drawnLines = 0
  let drawnAt = Number.NEGATIVE_INFINITY
  let soon: NodeJS.Timeout | undefined

  /** Where the lines stand nothing stands any more; the cursor is where they began. */
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
    /** Now, or as soon as a terminal bears it. */
    scheduleDraw(): void {
      const restMs = drawEveryMs - (now() - drawnAt)
      if (restMs <= 0) return draw()
      soon ??= setTimeout(() => {
        soon = undefined
        draw()
      }, restMs)
    },
    /** Writes something else, to either stream, above the lines. */
    aside(write: () => void): void {
      erase()
      write()
      draw()
    },
    /** No more is drawn. The last lines stay where they are to be kept. */
    close({ keep = false } = {}): void {
      clearInterval(timer)
      clearTimeout(soon)
      if (!keep) return erase()
      draw()
      if (drawnLines > 0) stderr.write('\n')
      drawnLines = 0
    },
  }
}
